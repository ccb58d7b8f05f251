import type { AgentEvent, RunResult } from "@ambit/client";

/** A part of a run that takes time. Milliseconds since the epoch, by the server's clock. */
export interface Stage {
  readonly name: string;
  readonly beganAt: number;
  /** 1: it is a part of the one around it, such as a request to the model in the agent's turn. */
  readonly depth: 0 | 1;
  /** Undefined: it goes on. */
  endedAt?: number;
}

type Receipt = NonNullable<RunResult["receipt"]>;
type StageName = NonNullable<Receipt["stages"]>[number]["name"];

const stageWords: Readonly<Record<StageName, string>> = {
  opening: "Opening the sandbox",
  filling: "Filling the workspace",
  starting: "Starting the agent",
  streaming: "Agent",
  collecting: "Collecting the outputs",
  closing: "Finishing",
  model: "Model",
};
/** Of a stage that a later server may have. */
const wordsOf = (stage: unknown) => Object.entries(stageWords).find(([name]) => name === stage)?.[1];

/** What an agent's turn consists of. */
const agentEvents: ReadonlySet<AgentEvent["type"]> = new Set([
  ...(["message", "message_start", "message_delta", "thought", "thought_start", "thought_delta"] as const),
  ...(["tool_call", "tool_output", "tool_result", "interaction_request", "usage"] as const),
]);

/**
 * What a run was busy with. While it goes on, only what takes longer than a second is known by its name; its receipt has each
 * stage, and the requests to its model.
 */
export class RunStages {
  #all: Stage[] = [];
  #agentDidAt: number | undefined;
  #percent: number | undefined;

  get all(): readonly Stage[] {
    return this.#all;
  }

  read(event: AgentEvent, at: number): void {
    if (this.#all.length === 0) this.#begin("Preparing", at);
    if (event.type === "data" && event.name === "stage") this.#enter(event.data);
    else if (event.type === "done") this.#finish(at);
    else if (agentEvents.has(event.type)) {
      if (this.#agentDidAt === undefined) this.#begin(stageWords.streaming, at);
      this.#agentDidAt = at;
    }
  }

  /** The run has ended, with this receipt. */
  conclude({ stages = [] }: Pick<Receipt, "stages">): void {
    const timed = stages.flatMap(({ name, at, durationMs }): Stage[] => {
      const beganAt = Date.parse(at);
      const shown = { name: stageWords[name], beganAt, endedAt: beganAt + durationMs };
      return durationMs === 0 ? [] : [{ ...shown, depth: name === "model" ? 1 : 0 }];
    });
    if (timed.length > 0) this.#all = timed;
  }

  /** What it is busy with now, in words. Undefined while the agent is at work. */
  get current(): string | undefined {
    const last = this.#all.at(-1);
    const name = last?.endedAt === undefined ? last?.name : undefined;
    if (name === stageWords.streaming) return undefined;
    if (name === undefined || name === "Preparing")
      return this.#agentDidAt === undefined
        ? "Preparing: opens the sandbox, fills the workspace and starts the agent"
        : undefined;
    return name === stageWords.filling && this.#percent !== undefined
      ? `${name}: ${this.#percent} % received`
      : name;
  }

  #enter(data: unknown): void {
    const { stage, at, percent }: { stage?: unknown; at?: unknown; percent?: unknown } = Object(data);
    const name = wordsOf(stage);
    const beganAt = typeof at === "string" ? Date.parse(at) : Number.NaN;
    if (name === undefined || Number.isNaN(beganAt)) return;
    this.#percent = typeof percent === "number" && percent < 100 ? Math.round(percent) : undefined;
    const last = this.#all.at(-1);
    if (last?.name !== name || last.beganAt !== beganAt) this.#begin(name, beganAt);
  }

  #finish(at: number): void {
    if (this.#agentDidAt !== undefined && this.#all.at(-1)?.name === stageWords.streaming)
      this.#begin(stageWords.closing, this.#agentDidAt);
    this.#end(at);
  }

  #begin(name: string, at: number): void {
    this.#end(at);
    this.#all.push({ name, beganAt: at, depth: 0 });
  }

  #end(at: number): void {
    const last = this.#all.at(-1);
    if (last !== undefined) last.endedAt ??= at;
  }
}
