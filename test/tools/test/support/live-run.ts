import type { AgentEvent, AgentEventOf, RunResult } from "@ambit/core";
import type { Run, Runner } from "@ambit/runner";

type EventType = AgentEvent["type"];

/** A run that keeps its events, so that a test can wait for them. */
export class LiveRun {
  readonly events: AgentEvent[] = [];
  readonly result: Promise<RunResult>;
  readonly #waiting = new Set<() => void>();
  #listener: () => void = () => {};
  #ended = false;

  private constructor(readonly run: Run) {
    this.result = this.#read();
  }

  static async begin(runner: Runner, request: object): Promise<LiveRun> {
    return new LiveRun(await runner.reserve().admit(request, { keepsEvents: true }));
  }

  get id(): string {
    return this.run.id;
  }

  of<Type extends EventType>(type: Type): AgentEventOf<Type>[] {
    return this.events.filter((event): event is AgentEventOf<Type> => event.type === type);
  }

  /** Waits until there are this many events of a type. */
  async until<Type extends EventType>(type: Type, count = 1): Promise<AgentEventOf<Type>[]> {
    for (;;) {
      const found = this.of(type);
      if (found.length >= count) return found;
      if (this.#ended)
        throw new Error(`the run ended after ${found.length} ${type}: ${JSON.stringify(this.events)}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Calls the listener for each event, including earlier ones. */
  onEvent(listener: () => void): void {
    this.#listener = listener;
    listener();
  }

  /** The result of each call of a tool, in the order in which they were reported. */
  resultsOf(tool: string): AgentEventOf<"tool_result">[] {
    const ids = this.of("tool_call").flatMap(({ id, name }) => (name === tool ? [id] : []));
    return this.of("tool_result").filter(({ id }) => ids.includes(id));
  }

  async #read(): Promise<RunResult> {
    let result: RunResult | undefined;
    for await (const part of this.run.parts()) {
      if ("result" in part) result = part.result;
      else for (const { event } of part.records) this.events.push(event);
      this.#listener();
      this.#wake();
    }
    this.#ended = true;
    this.#wake();
    if (result === undefined) throw new Error("the run ended without a result");
    return result;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
