import { RequestInvalid } from "@ambit/core";
import { type AgentEventOf, type Issue, interactionAnswerSchema } from "@ambit/core/contract";

export type InteractionKind = AgentEventOf<"interaction_request">["kind"];

/** The user's answer to a call that waits for it. */
export interface UserAnswer {
  readonly output: unknown;
  readonly isError: boolean;
}

/** Parses a user's answer. @throws RequestInvalid when it doesn't fit the question. */
export function readAnswer(kind: InteractionKind, body: unknown): UserAnswer {
  const parsed = interactionAnswerSchema.safeParse(body);
  if (kind === "user_approval") {
    if (parsed.success && "approved" in parsed.data) return { output: parsed.data, isError: false };
    throw misfit({
      path: "approved",
      message: "must be true or false: this interaction asks for an approval",
    });
  }
  if (parsed.success && "output" in parsed.data) {
    return { output: parsed.data.output, isError: parsed.data.isError };
  }
  throw misfit({ path: "output", message: "must hold the call's output: this interaction asks for it" });
}

/** Whether the user approved; undefined when the answer isn't about that. */
export function approvalIn({ output }: UserAnswer): boolean | undefined {
  if (typeof output !== "object" || output === null || !("approved" in output)) return undefined;
  return typeof output.approved === "boolean" ? output.approved : undefined;
}

function misfit(issue: Issue): RequestInvalid {
  return new RequestInvalid([issue]);
}
