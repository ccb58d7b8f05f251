import { type AcceptedPlan, type AmbitError, type AtCapacity, RunCancelled, toAmbitError } from "@ambit/core";
import {
  type AgentEvent,
  onDisconnectOf,
  type RunRequest,
  type RunResult,
  type StreamRecord,
} from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { Asking } from "../call/ask/asking.js";
import { Pause } from "../call/pause.js";
import { ToolCalls } from "../call/tool-calls.js";
import { ToolExecution } from "../call/tools/execute.js";
import { Observation } from "../events/observation.js";
import { cancellable, nextPart, nextRecord, type Reader, type RunPart } from "../events/reading.js";
import { RunEvents } from "../events/run-events.js";
import { Warnings } from "../events/warnings.js";
import { Deadlines } from "../lifetime/deadlines.js";
import { RightToAct, type RunHold } from "../lifetime/right-to-act.js";
import type { OwnedScope } from "../lifetime/scope.js";
import { ModelCalls } from "../model/model-calls.js";
import { requireListed } from "../session/agent/publish.js";
import { AgentStarter, dismiss } from "../session/agent/start-agent.js";
import { forgotten } from "../session/history.js";
import { composePrompt, hasHistory } from "../session/prompt.js";
import { Sessions } from "../session/sessions.js";
import { fillWorkspace } from "../session/workspace-files.js";
import { tokens } from "../tokens.js";
import { announcements } from "./announcement.js";
import { logFailure } from "./log-failure.js";
import { conclude, stopReasonOf } from "./outcome.js";
import {
  advance,
  endedWell,
  failureOf,
  progressOf,
  type RunStage,
  type RunState,
  stageOf,
  startingIn,
  type TurnEnd,
} from "./run-state.js";
import { Turn } from "./turn.js";

/** One run of an admitted request: steps 3 to 7. Steps 1 and 2, parse and plan, are `admit`'s. */
@injectable()
export class Run {
  #state: RunState = { name: "admitted" };
  /** Milliseconds since 1970. */
  readonly begunAt = Date.now();
  readonly #settled = Promise.withResolvers<AmbitError | undefined>();
  /** Resolves when everything the run opened is closed, with its failure if there was one. Never rejects. */
  readonly ended = this.#settled.promise;

  constructor(
    @inject(tokens.runId) readonly id: string,
    @inject(tokens.runKey) readonly key: string,
    @inject(tokens.request) readonly request: RunRequest,
    @inject(tokens.plan) readonly plan: AcceptedPlan,
    @inject(tokens.secrets) private readonly secrets: readonly string[],
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.log) private readonly log: Log,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RightToAct) private readonly right: RightToAct,
    @inject(Observation) private readonly observation: Observation,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(Warnings) private readonly warnings: Warnings,
    @inject(Asking) private readonly asking: Asking,
    @inject(Pause) private readonly pause: Pause,
    @inject(Sessions) private readonly sessions: Sessions,
    @inject(AgentStarter) private readonly agents: AgentStarter,
    @inject(ToolExecution) private readonly execution: ToolExecution,
    @inject(ToolCalls) private readonly toolCalls: ToolCalls,
    @inject(ModelCalls) private readonly modelCalls: ModelCalls,
    @inject(Turn) private readonly turn: Turn,
  ) {}

  /** Starts its time limit. A run that is ended before it is read still ends. */
  admitted(): void {
    this.observation.begin((text) => this.events.redactor.text(text));
    for (const event of announcements(this.id, this.request, this.plan)) this.events.emit(event);
    this.deadlines.admitted();
    this.scope.signal.addEventListener("abort", () => this.#begin(), { once: true });
  }

  /** The id of its turn, as the event `turn` has it. */
  get turnId(): string {
    return this.request.turnId ?? this.id;
  }

  /** How far it got, which determines what a failure says about the host. */
  get stage(): RunStage {
    return stageOf(progressOf(this.#state));
  }

  /** Its one result, once it has ended. */
  get result(): RunResult | undefined {
    return this.#state.name === "ended" ? this.#state.result : undefined;
  }

  /** Ends the run early. It still returns its one result. */
  cancel(reason: RunCancelled | AtCapacity): void {
    this.scope.abort(reason);
  }

  /** Its first events, which are there before it begins. Its reader gets them here or with the others. */
  announced(): readonly AgentEvent[] {
    return this.events.takeAll();
  }

  /** From now on it acts only while this hold is current. */
  holdBy(hold: RunHold): void {
    this.right.hold = hold;
  }

  /** Ends it before it begins: observers don't count it as a run. */
  withdraw(): void {
    this.observation.withdraw();
    this.cancel(new RunCancelled("The run did not begin."));
  }

  /** The reader left: the run is cancelled or goes on (`onDisconnect`). Its later events are dropped. */
  leave(): void {
    if (onDisconnectOf(this.request) === "cancel")
      this.cancel(new RunCancelled("The client went away.", "caller"));
    this.events.abandon();
  }

  /** The approximate number of characters that the run holds. */
  get held(): number {
    return this.events.held;
  }

  /** A live answer to what the run asks its user. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void {
    this.asking.interactions.answer(interactionId, body);
  }

  /**
   * Begins the run: the events as they happen, then exactly one result. For one reader; it may leave early by
   * `return()`, also while it waits for a record, and then waits only for a run that this cancels.
   */
  records(): AsyncGenerator<StreamRecord, void, undefined> {
    return this.#read(nextRecord);
  }

  /** The same, for a reader that takes all available events at once. */
  parts(): AsyncGenerator<RunPart, void, undefined> {
    return this.#read(nextPart);
  }

  #read<Item>(reader: Reader<Item>): AsyncGenerator<Item, void, undefined> {
    this.#begin();
    const next = reader(this.events, async () => {
      await this.ended;
      return this.result;
    });
    return cancellable(next, async () => {
      this.leave();
      if (this.scope.signal.aborted) await this.ended;
    });
  }

  #begin(): void {
    if (this.#state.name !== "admitted") return;
    this.#advance({ name: "opening" });
    void this.#live();
  }

  /** Never rejects: if anything throws, the run closes what it opened and returns its one result. */
  async #live(): Promise<void> {
    const { request, plan } = this;
    let end = await this.#turn();
    const progress = progressOf(this.#state);
    this.#advance({ name: "closing", progress, end });
    // 7 close: everything opened, in reverse
    await this.scope.close();
    const failed = (thrown: unknown) => {
      end = this.#failed(thrown, end);
    };
    this.events.close(() => stopReasonOf(end), failed);
    const output = await this.events.output();
    const outcome = {
      ...{ runId: this.id, events: this.events, output, traceId: this.observation.traceId, progress },
      ...{ failure: failureOf(end), warnings: this.warnings },
      sessionName: request.sessionId ?? this.asking.turn,
    };
    const { result, failure } = conclude(request, plan, outcome, this.log);
    this.#advance({ name: "ended", progress, result });
    this.#settled.resolve(failure);
  }

  /** Steps 3 to 6, and the events of a turn that didn't complete. Never rejects. */
  async #turn(): Promise<TurnEnd> {
    const end = await this.#drive().catch((thrown: unknown) => this.#failed(thrown));
    try {
      this.turn.finish(end);
      return end;
    } catch (thrown) {
      return this.#failed(thrown, end);
    }
  }

  async #drive(): Promise<TurnEnd> {
    const { request, plan, scope, toolCalls } = this;
    // Deferred first, so that it runs after an agent that isn't kept has been closed.
    scope.defer(() => toolCalls.end());
    await this.right.confirmed(scope.signal);
    scope.signal.throwIfAborted();
    for (const warning of await this.asking.read()) this.warnings.add(warning);

    // 3 open: the session's sandbox, and what the request puts into it
    const session = await this.deadlines.starting("Opening the sandbox", async () => {
      const loan = await this.sessions.borrow(request, plan, {
        signal: scope.signal,
        secrets: this.secrets,
        decided: (decision, count) => this.events.decisions.record(decision, count),
        failed: (failure) => scope.abort(failure),
        warn: (message) => this.warnings.add({ path: "sessionId", message }),
      });
      scope.defer(() => loan.release(endedWell(this.#state, this.turn.agentEnded) && !scope.unclean));
      this.#advance(startingIn(loan.session));
      scope.signal.throwIfAborted();
      this.events.redactor.hide(loan.session.secrets);
      const { sandbox, harness } = plan;
      await fillWorkspace(loan.session.sandbox, sandbox.actor.name, request, harness.actor, scope.signal);
      return loan.session;
    });

    // 4 publish the tools, 5 start the agent; or reuse the session's
    const { started, warm, continued } = await this.deadlines.starting("Starting the agent", () =>
      this.agents.start(session),
    );
    const { agent } = started;
    const remembers = warm || agent.history === "loaded";
    const history = warm ? "warm" : remembers ? "loaded" : hasHistory(request) ? "replayed" : "new";
    this.#advance({ name: "streaming", session, agent, history });
    if (continued && history === "new") this.warnings.add(forgotten);
    session.conversation = { harness: plan.harness.actor.id, id: agent.conversation };
    toolCalls.serve(started.router, started.toolNames);
    this.modelCalls.serve(started.modelRouter, agent);
    this.scope.defer(async () => {
      started.router.current = undefined;
      started.modelRouter.current = undefined;
      // An agent that didn't end its turn can't be given another.
      if (!this.turn.agentEnded) await dismiss(session, started);
    });
    this.execution.prepare(session.sandbox);

    // 6 stream: the turn's events, completed with what only the runner knows
    const stopReason = await this.turn.stream(agent, composePrompt(request, remembers));
    if (this.pause.isPaused) return { how: "paused" };
    this.modelCalls.requireResponse();
    requireListed(started.servers);
    this.turn.requireOutput(stopReason);
    return { how: "completed", stopReason };
  }

  #advance(next: RunState): void {
    this.#state = advance(this.#state, next);
    if (next.name === "ended") this.observation.ended(next.result);
    else if (next.name !== "admitted") this.observation.entered(next.name);
  }

  /** @param before how the turn had ended until then: an earlier failure takes precedence over a later one. */
  #failed(thrown: unknown, before?: TurnEnd): TurnEnd {
    if (this.pause.isPaused && !this.scope.signal.aborted) {
      this.log.debug({ runId: this.id, error: thrown }, "the agent's turn ended when the run paused");
      return before ?? { how: "paused" };
    }
    // Once the scope is aborted, its reason counts, and not the errors that follow from it.
    const failure = this.scope.signal.aborted
      ? toAmbitError(this.scope.signal.reason)
      : this.modelCalls.explained(toAmbitError(thrown));
    logFailure(this.log, this.id, failure);
    return before?.how === "failed" ? before : { how: "failed", failure };
  }
}
