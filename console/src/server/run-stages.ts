import type { AgentEvent } from "@ambit/client";

/** A part of a run that takes time. Milliseconds since the epoch, by the server's clock. */
export interface Stage {
  readonly name: string;
  readonly beganAt: number;
  /** Undefined: it goes on. */
  endedAt?: number;
}

/** What an agent's turn consists of. */
const agentEvents: ReadonlySet<AgentEvent["type"]> = new Set([
  ...(["message", "message_start", "message_delta", "thought", "thought_start", "thought_delta"] as const),
  ...(["tool_call", "tool_output", "tool_result", "interaction_request", "usage"] as const),
]);

/** What a run was busy with, one after the other, as its events show it. */
export class RunStages {
  readonly all: Stage[] = [];
  #agentDidAt: number | undefined;

  read(event: AgentEvent, at: number): void {
    if (this.all.length === 0) this.#begin("Preparing", at);
    if (event.type === "data" && event.name === "setup") this.#setUp(event.data, at);
    else if (event.type === "done") this.#finish(at);
    else if (agentEvents.has(event.type)) {
      if (this.#agentDidAt === undefined) this.#begin("Agent", at);
      this.#agentDidAt = at;
    }
  }

  /** What the preparation is at, in words. Undefined once the agent is at work. */
  get preparation(): string | undefined {
    if (this.#agentDidAt !== undefined) return undefined;
    const name = this.all.at(-1)?.name;
    return name === undefined || name === "Preparing"
      ? "Preparing: opens the sandbox, fills the workspace and starts the agent"
      : name;
  }

  #setUp(data: unknown, at: number): void {
    const { state, command }: { state?: unknown; command?: unknown } = Object(data);
    if (state === "started") this.#begin(`Setting up: ${typeof command === "string" ? command : ""}`, at);
    else if (state === "waiting") this.#begin("Waiting for another run's setup", at);
    else if (state === "ended") this.#begin("Starting the agent", at);
  }

  #finish(at: number): void {
    if (this.#agentDidAt !== undefined) this.#begin("Finishing", this.#agentDidAt);
    this.#end(at);
  }

  #begin(name: string, at: number): void {
    this.#end(at);
    this.all.push({ name, beganAt: at });
  }

  #end(at: number): void {
    const last = this.all.at(-1);
    if (last !== undefined) last.endedAt ??= at;
  }
}
