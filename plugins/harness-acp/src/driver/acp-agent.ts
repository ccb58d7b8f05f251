import {
  type Agent,
  type AgentEvents,
  type ContentBlock,
  type Evidence,
  type HarnessCapabilities,
  HarnessFailed,
  type Log,
  type Process,
  resultWithin,
  type Turn,
} from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import { type AgentAbilities, readSteering, steeringMethod } from "./answers.js";
import type { AcpConnection } from "./connection.js";
import type { DriverLimits } from "./limits.js";
import { ActiveTurn, LateMessages, promptContent } from "./turn.js";

export interface AcpAgentOptions {
  readonly profile: Profile;
  readonly process: Process;
  readonly connection: AcpConnection;
  readonly conversation: string;
  readonly history: "new" | "loaded";
  readonly capabilities: HarnessCapabilities;
  /** The agent's versions, for the receipt. */
  readonly versions: Evidence;
  /** Whether its program was replaced since it started. */
  isOutdated(): boolean;
  readonly abilities: AgentAbilities;
  readonly model: string | undefined;
  /** The models that the agent lists; may be empty. */
  readonly models: readonly string[];
  readonly servers: readonly string[];
  /** Whether a later run may resume the conversation; if so, the agent gets time to store it. */
  readonly isResumable: boolean;
  toolsListed(): boolean;
  readonly limits: DriverLimits;
  readonly log: Log;
}

/** A started agent: one process, one conversation, one turn at a time. */
export class AcpAgent implements Agent {
  readonly conversation: string;
  readonly history: "new" | "loaded";
  readonly capabilities: HarnessCapabilities;
  readonly evidence: Evidence;
  readonly model?: string;
  readonly models: readonly string[];
  readonly steer?: NonNullable<Agent["steer"]>;
  readonly #options: AcpAgentOptions;
  readonly #late: LateMessages;
  #costBefore = 0;
  #running = false;
  #exited = false;
  /** Whether the agent knows that the last turn ended: it has nothing left to store then. */
  #settled = true;
  #closed: Promise<void> | undefined;

  constructor(options: AcpAgentOptions) {
    this.#options = options;
    this.conversation = options.conversation;
    this.history = options.history;
    this.capabilities = options.capabilities;
    this.evidence = { ...options.process.evidence, ...options.versions };
    this.models = options.models;
    const { connection, limits, profile } = options;
    const { title, quirks } = profile;
    this.#late = new LateMessages({ title, connection, staysInOrder: quirks.staysInOrder, limits });
    if (options.model !== undefined) this.model = options.model;
    if (options.abilities.takesSteering) this.steer = (content, signal) => this.#steer(content, signal);
    void options.process.exit.then(() => {
      this.#exited = true;
    });
  }

  prompt(turn: Turn): AgentEvents {
    return { [Symbol.asyncIterator]: () => this.#begin(turn) };
  }

  ended(): boolean {
    // A killed agent counts as ended before its exit is seen.
    return this.#exited || !this.#settled || this.#closed !== undefined || this.#options.connection.closed;
  }

  isOutdated(): boolean {
    return this.#options.isOutdated();
  }

  close(): Promise<void> {
    this.#closed ??= this.#leave(this.#options.isResumable && this.#settled && !this.#running);
    return this.#closed;
  }

  async #leave(gracefully: boolean): Promise<void> {
    const { profile, connection, abilities, limits, log } = this.#options;
    const unshown = this.#late.take();
    if (unshown !== undefined) log.warn({ agent: profile.title }, unshown);
    const saves = gracefully && !profile.quirks.savesBeforeAnswering && !connection.closed;
    if (saves && abilities.closesSessions) {
      const late = new AbortController();
      const closed = connection
        .request("session/close", { sessionId: this.conversation }, "its session's end", late.signal)
        .catch((error: unknown) => log.debug({ agent: profile.title, error }, "the session wasn't closed"));
      await resultWithin(closed, limits.closeMs);
      late.abort();
    }
    await closeAgent(this.#options, gracefully);
  }

  async #steer(content: readonly ContentBlock[], signal: AbortSignal): Promise<boolean> {
    const { profile, connection, abilities } = this.#options;
    const { title } = profile;
    if (!this.#running) return false;
    const prompt = promptContent(content, abilities.prompt, title);
    // Otherwise an agent whose turn has just ended would begin another one by itself.
    const _meta = { steering: { idleBehavior: "promptRequired" } };
    const params = { sessionId: this.conversation, prompt, _meta };
    return readSteering(
      await connection.request(steeringMethod, params, "a message in its turn", signal),
      title,
    );
  }

  #begin(turn: Turn): ActiveTurn {
    const { profile, connection, servers, toolsListed, abilities, limits, log, process } = this.#options;
    if (this.#closed !== undefined) throw new HarnessFailed(`${profile.title} was closed: start it again.`);
    if (this.#running)
      throw new HarnessFailed(`${profile.title} is in a turn already: start one turn at a time.`);
    this.#running = true;
    return new ActiveTurn(turn, {
      profile,
      connection,
      sessionId: this.conversation,
      servers,
      toolsListed,
      abilities: abilities.prompt,
      limits,
      costBefore: this.#costBefore,
      late: this.#late,
      log,
      over: ({ cost, answered }) => {
        this.#running = false;
        this.#costBefore = cost;
        this.#settled = answered;
        if (answered) return;
        log.warn({ agent: profile.title }, "the agent didn't end its turn: killed");
        process.kill().catch((error: unknown) => log.error({ error }, "the agent could not be killed"));
      },
    });
  }
}

/** An agent's process with a connection to it: it has to be closed. */
export type SpawnedAgent = Pick<AcpAgentOptions, "profile" | "process" | "connection" | "limits">;

/** Lets the agent exit by itself if it still has something to store, then kills it and everything it started. */
export async function closeAgent(
  { profile, process, connection, limits }: SpawnedAgent,
  gracefully: boolean,
): Promise<void> {
  const closing = connection.close();
  if (gracefully && !profile.quirks.savesBeforeAnswering) await resultWithin(process.exit, limits.closeMs);
  // The kill follows an exit too: processes that the agent started may remain.
  await process.kill();
  await process.exit;
  await closing;
}
