import { type InputAnswer, type InputQuestion, isJsonObject, type JsonObject } from "@ambit/core/plugin";
import { z } from "zod";
import { textAt } from "./json-reading.js";

export type PermissionOutcome =
  | { readonly outcome: "selected"; readonly optionId: string }
  | { readonly outcome: "cancelled" };

export const cancelled: PermissionOutcome = { outcome: "cancelled" };

interface Option {
  readonly id: string;
  readonly kind: string;
  /** Name and id in lower case, for agents that give every option the same kind. */
  readonly words: string;
}

const negative = /\b(no|not|don'?t|deny|denied|reject\w*|block|cancel\w*|abort|refuse|stop|decline)\b/;
const endsTurn = /\b(cancel|abort)\b/;

/**
 * The option that allows only this call, never an "always", which would cover calls that no user has seen. Undefined if
 * there is none.
 */
export function allowOption(options: unknown): string | undefined {
  return read(options).find((option) => option.kind === "allow_once" && !negative.test(option.words))?.id;
}

/**
 * The option that denies only this call, preferably one that doesn't end the turn. Without one, the answer is
 * `cancelled`, which every agent takes as a denial.
 */
export function denyOutcome(options: unknown): PermissionOutcome {
  const all = read(options);
  const rejecting = all.filter((option) => option.kind === "reject_once");
  const chosen =
    rejecting.find((option) => !endsTurn.test(option.words)) ??
    rejecting[0] ??
    all.find((option) => option.kind === "allow_once" && negative.test(option.words));
  return chosen === undefined ? cancelled : { outcome: "selected", optionId: chosen.id };
}

function read(options: unknown): readonly Option[] {
  if (!Array.isArray(options)) return [];
  return options.flatMap((option: unknown) => {
    if (!isJsonObject(option)) return [];
    const id = textAt(option, "optionId");
    if (id === undefined) return [];
    const words = `${textAt(option, "name") ?? ""} ${id.replaceAll(/[_-]/g, " ")}`.toLowerCase();
    return [{ id, kind: textAt(option, "kind") ?? "", words }];
  });
}

/** ACP's `CreateElicitationResponse`. */
export type ElicitationResponse =
  | { readonly action: "accept"; readonly content?: JsonObject }
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
export function inputQuestion(request: JsonObject, size: number): InputQuestion | undefined {
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
