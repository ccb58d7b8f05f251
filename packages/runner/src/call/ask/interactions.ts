import { NotFound } from "@ambit/core";
import type { AgentEvent, InteractionPayload } from "@ambit/core/contract";
import { LinkedAbort } from "../../lifetime/linked-abort.js";
import { type Answer, type InteractionKind, readAnswer } from "./answer.js";

/** A question to the user. */
export interface Question {
  /** The id under which the call is announced. */
  readonly id: string;
  readonly kind: InteractionKind;
  readonly payload: InteractionPayload;
}

interface Open {
  readonly kind: InteractionKind;
  readonly settle: (answer: Answer) => void;
}

/** What a run asks its user, and the live answers while it waits. Each question is answered once. */
export class Interactions {
  readonly #open = new Map<string, Open>();

  constructor(
    readonly emit: (event: AgentEvent) => void,
    /** Milliseconds that a question may wait for a live answer; 0: it doesn't wait. */
    readonly waitMs: number,
  ) {}

  /** Asks a question. Undefined if there is no answer in time: the run then has to pause. */
  async ask({ id, kind, payload }: Question, signal: AbortSignal): Promise<Answer | undefined> {
    const isHeld = this.waitMs > 0 && !signal.aborted;
    const expiresAt = isHeld ? { expiresAt: new Date(Date.now() + this.waitMs).toISOString() } : {};
    this.emit({ type: "interaction_request", id, kind, payload: { ...payload, ...expiresAt } });
    if (!isHeld) return undefined;
    using waiting = new LinkedAbort(signal);
    waiting.after(this.waitMs, () => new Error("there was no answer in time"));
    try {
      return await new Promise<Answer | undefined>((resolve) => {
        this.#open.set(id, { kind, settle: resolve });
        waiting.signal.addEventListener("abort", () => resolve(undefined), { once: true });
      });
    } finally {
      this.#open.delete(id);
    }
  }

  /**
   * A live answer.
   * @throws NotFound when the question isn't open: never asked, answered already, or given up.
   * @throws RequestInvalid when the answer doesn't fit the question; it stays open.
   */
  answer(id: string, body: unknown): void {
    const open = this.#open.get(id);
    if (open === undefined) {
      throw new NotFound(`There is no open interaction '${id}': it was answered, given up, or never asked.`);
    }
    const answer = readAnswer(open.kind, body);
    this.#open.delete(id);
    open.settle(answer);
  }
}
