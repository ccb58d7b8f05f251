import type { InputAnswer, InputQuestion } from "@ambit/core/plugin";
import { z } from "zod";
import type { JsonRecord } from "../json-reading.js";

/** ACP's `CreateElicitationResponse`. */
export type ElicitationResponse =
  | { readonly action: "accept"; readonly content?: JsonRecord }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

export const cancelledElicitation: ElicitationResponse = { action: "cancel" };

/** Characters of a whole question, which is kept while it waits for the user. */
const maxCharacters = 65_536;

const message = z.string().min(1).max(16_384);
const property = z.looseObject({ type: z.enum(["string", "number", "integer", "boolean", "array"]) });

/** ACP's `CreateElicitationRequest`, the part that a user can answer: a flat form, or a page to visit. */
const questionSchema = z.discriminatedUnion("mode", [
  z.object({
    mode: z.literal("form"),
    message,
    requestedSchema: z.looseObject({
      type: z.literal("object").optional(),
      properties: z.record(z.string(), property).optional(),
      required: z.array(z.string()).nullish(),
    }),
  }),
  z.object({
    mode: z.literal("url"),
    message,
    url: z.url({ protocol: /^https?$/ }).max(4_096),
  }),
]);

/** The agent's question. Undefined if it can't be shown to a user: another mode, nested values, too much text. */
export function inputQuestion(request: JsonRecord, size: number): InputQuestion | undefined {
  if (size > maxCharacters) return undefined;
  const parsed = questionSchema.safeParse(request);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  return data.mode === "form"
    ? { message: data.message, form: data.requestedSchema }
    : { message: data.message, url: data.url };
}

export function elicitationResponse(
  answer: Exclude<InputAnswer, "park">,
  { form }: InputQuestion,
): ElicitationResponse {
  if (answer.action === "decline") return answer;
  return form === undefined ? { action: "accept" } : { action: "accept", content: answer.content };
}
