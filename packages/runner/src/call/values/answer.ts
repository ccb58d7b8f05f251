import { RequestInvalid } from "@ambit/core";
import {
  type AgentEventOf,
  type Issue,
  interactionAnswerSchema,
  knownShapeOf,
  readableIssues,
} from "@ambit/core/contract";
import type { z } from "zod";

export type InteractionKind = AgentEventOf<"interaction_request">["kind"];

/** The user's answer to a call that waits for it. */
export interface UserAnswer {
  readonly output: unknown;
  readonly isError: boolean;
}

const [approvalSchema, outputSchema] = interactionAnswerSchema.options;
const noApproval = {
  path: "approved",
  message: "must be true or false: this interaction asks for an approval",
};
const noOutput = { path: "output", message: "must hold the call's output: this interaction asks for it" };

/** Parses a user's answer. @throws RequestInvalid when it doesn't fit the question. */
export function readAnswer(kind: InteractionKind, body: unknown): UserAnswer {
  if (kind === "user_approval") {
    const approval = approvalSchema.safeParse(body);
    if (approval.success) return { output: approval.data, isError: false };
    throw misfit(approvalSchema, approval.error, body, noApproval);
  }
  const answer = outputSchema.safeParse(body);
  if (!answer.success) throw misfit(outputSchema, answer.error, body, noOutput);
  if (!("output" in answer.data)) throw new RequestInvalid([noOutput]);
  return { output: answer.data.output, isError: answer.data.isError };
}

/** Whether the user approved; undefined when the answer isn't about that. */
export function approvalIn({ output }: UserAnswer): boolean | undefined {
  if (typeof output !== "object" || output === null || !("approved" in output)) return undefined;
  return typeof output.approved === "boolean" ? output.approved : undefined;
}

/** What else is wrong is named too: an answer with one field too many isn't one without an approval. */
function misfit(schema: z.ZodType, error: z.ZodError, body: unknown, lacks: Issue): RequestInvalid {
  const found = readableIssues(error.issues, { value: body, level: knownShapeOf(schema), path: [] });
  return new RequestInvalid(found.map((issue) => (["", lacks.path].includes(issue.path) ? lacks : issue)));
}
