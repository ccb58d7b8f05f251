import type { AnswerUse } from "../values/answer.js";

/**
 * `completed`: the agent ended its turn itself · `stopped`: its user did · `cut_short`: it lost what its calls came to, and may
 * make them again in its next turn.
 */
export type TurnEnding = "completed" | "stopped" | "cut_short";

/**
 * The calls of a run that its user has decided on. Of a tool that the agent executes itself, its answer is claimed until the
 * agent reports the result. Of any other, the outcome is kept until a model has seen it: an agent whose turn pauses may drop
 * what it got, and make the call again.
 */
export class ApprovedCalls {
  /** By `Call.id`. */
  readonly #byAgent = new Map<string, AnswerUse>();
  /** Of calls that are executed by the runner. */
  readonly #executing = new Set<AnswerUse>();
  /** With outcomes, which no model of this turn has seen. */
  readonly #unseen = new Set<AnswerUse>();
  readonly #seen = new Set<AnswerUse>();
  readonly #spending: Promise<void>[] = [];

  /** The agent executes it itself. */
  begun(id: string, use: AnswerUse): void {
    this.#byAgent.set(id, use);
  }

  /** The runner executes a call, or hands its user's output to the agent. */
  executing(use: AnswerUse): void {
    this.#executing.add(use);
  }

  /** The call has a result. */
  ended(id: string): void {
    const use = this.#byAgent.get(id);
    this.#byAgent.delete(id);
    if (use !== undefined) this.#spending.push(use.spend());
  }

  /** The agent gets, or could get, this outcome. */
  keep(use: AnswerUse): void {
    this.#executing.delete(use);
    this.#unseen.add(use);
  }

  /** A request to the model begins: it has what the agent got until now. */
  modelAsked(): void {
    for (const use of this.#unseen) this.#seen.add(use);
    this.#unseen.clear();
  }

  async end(ending: TurnEnding): Promise<void> {
    const open = [...this.#byAgent.values()];
    const stopped = [...this.#executing];
    const done = ending === "cut_short" ? [...this.#seen] : [...this.#seen, ...this.#unseen];
    this.#byAgent.clear();
    this.#executing.clear();
    this.#seen.clear();
    this.#unseen.clear();
    await Promise.all([
      ...this.#spending.splice(0),
      ...stopped.map((use) => use.lose()),
      ...open.map((use) => (ending === "completed" ? use.spend() : use.lose())),
      ...done.map((use) => use.forget()),
    ]);
  }
}
