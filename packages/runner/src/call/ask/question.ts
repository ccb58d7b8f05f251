import type { InteractionPayload } from "@ambit/core/contract";
import type { InteractionKind, UserAnswer } from "../values/answer.js";
import type { Call, CallSubject } from "../values/call.js";

/** What a user is asked about. Two servers' tools of one name are two tools. */
export interface QuestionSubject extends Pick<CallSubject, "origin" | "name" | "input"> {
  readonly kind: InteractionKind;
}

/** A question of a run to its user. */
export interface Question<Value> extends QuestionSubject {
  /** The call that waits for the answer: it is announced before the question. Undefined: it isn't about a call. */
  readonly call?: Call;
  /** What the user reads of it besides name and input. */
  readonly details?: InteractionPayload | undefined;
  /** Aborts when the agent takes the question back. Default: never. */
  readonly withdrawn?: AbortSignal | undefined;
  /** What the answer means, and what its event says of it. */
  read(answer: UserAnswer): { readonly value: Value; readonly response: InteractionPayload };
}
