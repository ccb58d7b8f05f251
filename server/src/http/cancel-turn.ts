import { NotFound, projectOf } from "@ambit/core";
import { validBody } from "@ambit/core/plugin";
import { FairMap, type Runner } from "@ambit/runner";
import type { z } from "zod";
import { callersProjects } from "../tenants/caller.js";
import { json } from "./response/send.js";
import { type CancelTurnResponse, cancelTurnRequestSchema } from "./route-schemas.js";
import type { Exchange, ServerContext } from "./server-context.js";

type Command = z.infer<typeof cancelTurnRequestSchema>;

/** Bytes of the body, which holds a few short names. */
const maxBodyBytes = 16 * 1024;
/** Commands of all projects whose responses are remembered, so that a repeated one gets the same. */
const maxRemembered = 4_000;

/** What a command does to the run that its session has now. */
export type CancelDecision = "stop" | "not_running" | "superseded_by_newer_turn";

/** The run that a session has. */
interface CurrentTurn {
  readonly turnId: string;
  /** Milliseconds since 1970. */
  readonly begunAt: number;
}

/** A command stops the turn that it names, or without a name the one that ran when it was given. Pure. */
export function decide(turn: CurrentTurn | undefined, { target, createdAt }: Command): CancelDecision {
  if (turn === undefined) return "not_running";
  const named = target?.turnId ?? target?.expectedTurnId ?? undefined;
  if (named !== undefined) return named === turn.turnId ? "stop" : "superseded_by_newer_turn";
  const createdAtMs = createdAt == null ? undefined : new Date(createdAt).getTime();
  return createdAtMs !== undefined && createdAtMs < turn.begunAt ? "superseded_by_newer_turn" : "stop";
}

/** `POST /cancel`: stops a session's turn, and keeps the session. */
export class TurnCancellation {
  readonly #answers = new FairMap<Promise<CancelTurnResponse>>(maxRemembered);

  constructor(readonly runner: Pick<Runner, "hasSession" | "runIn" | "cancel">) {}

  /** @throws NotFound for a session that this runner doesn't have; RequestInvalid */
  async handle({ bodies, log }: ServerContext, { incoming }: Exchange): Promise<Response> {
    const command = validBody(cancelTurnRequestSchema, await bodies.json(incoming, maxBodyBytes));
    const projects = callersProjects(incoming);
    const project = projects === "all" ? projectOf({ projectId: command.projectId ?? undefined }) : projects;
    const answer = await this.answer(command, project);
    log.info({ sessionId: command.sessionId, ...answer.execution }, "a turn was to be cancelled");
    return json(200, answer);
  }

  /** The response to a repeated command is the first one's. @throws NotFound */
  answer(command: Command, project: string | undefined): Promise<CancelTurnResponse> {
    const key = JSON.stringify([command.sessionId, command.id]);
    const answering = this.#answers.get(project, key) ?? this.#cancel(command, project);
    // One that failed isn't remembered: it may be sent again.
    answering.catch(() => this.#answers.delete(project, key));
    this.#answers.set(project, key, answering);
    return answering;
  }

  async #cancel(command: Command, project: string | undefined): Promise<CancelTurnResponse> {
    const { runner } = this;
    const { sessionId } = command;
    const run = runner.runIn(sessionId, project);
    if (!runner.hasSession({ session: sessionId, project }))
      throw new NotFound(`There is no session '${sessionId}' here, or it belongs to another project.`);
    const decision = decide(run, command);
    const id = run?.turnId ?? command.target?.turnId ?? "";
    if (decision !== "stop" || run === undefined)
      return {
        ok: true,
        result: "obsolete",
        execution: { id, state: decision === "stop" ? "not_running" : decision },
      };
    // Its key tells it from a run of the same id that another tenant, or the operator, may have.
    runner.cancel(run.key);
    await run.ended;
    return { ok: true, result: "applied", execution: { id, state: "stopped" } };
  }
}
