import type { InteractionAnswer, Schema } from "@ambit/client";
import { type ElicitRequestFormParams, isSpecType } from "@modelcontextprotocol/server";
import { z } from "zod";

/** Characters of a call's arguments in a question. */
const maxArguments = 2_000;

/** A question of a run, as a tool's result names it. */
export const questionSchema = z.object({
  id: z.string(),
  kind: z.enum(["user_approval", "user_input", "client_tool"]).meta({
    description:
      "`user_approval`: whether the call may be made. `user_input`: values for a form, as `output`. `client_tool`: the call's `output`.",
  }),
  message: z.string(),
  toolName: z.string().optional(),
  input: z.unknown().optional().meta({ description: "The call's arguments, or the form." }),
  expiresAt: z.string().optional().meta({ description: "When the run pauses, if it still waits now." }),
});
export type Question = z.output<typeof questionSchema>;

type Interaction = Schema<"InteractionsResponse">["interactions"][number];

export function questionOf({ id, kind, payload }: Interaction): Question {
  const { toolName, server, input, expiresAt, earlierOutcome } = payload;
  return {
    id,
    kind,
    message: messageOf(kind, { toolName, server, input, earlierOutcome }),
    ...(toolName === undefined ? {} : { toolName }),
    ...(input === undefined ? {} : { input }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

const formSchema = z.object({
  message: z.string(),
  form: z.unknown().optional(),
  url: z.string().optional(),
});

function messageOf(kind: Question["kind"], payload: Partial<Interaction["payload"]>): string {
  const { toolName = "a tool", server, input, earlierOutcome } = payload;
  if (kind === "user_input") {
    const { data } = formSchema.safeParse(input);
    if (data !== undefined) return data.url === undefined ? data.message : `${data.message} (${data.url})`;
  }
  const name = server === undefined ? toolName : `${toolName} of ${server}`;
  const again = earlierOutcome === "unknown" ? " The same call may have run before." : "";
  const verb = kind === "client_tool" ? "needs the output of" : "wants to call";
  return `The agent ${verb} ${name}${argumentsText(input)}.${again}`;
}

function argumentsText(input: unknown): string {
  if (input === undefined) return "";
  const text = JSON.stringify(input);
  return ` with ${text.length > maxArguments ? `${text.slice(0, maxArguments)}…` : text}`;
}

/** A form for the client's user. Undefined for what no form can ask: a page to visit, the output of a client tool. */
export function formOf({ kind, message, input }: Question): ElicitRequestFormParams | undefined {
  if (kind === "user_approval") {
    return {
      mode: "form",
      message,
      requestedSchema: {
        type: "object",
        properties: { approved: { type: "boolean", title: "Allow this call" } },
        required: ["approved"],
      },
    };
  }
  const { data } = formSchema.safeParse(kind === "user_input" ? input : undefined);
  if (data?.form === undefined) return undefined;
  const form = {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: {}, ...asObject(data.form) },
  };
  return isSpecType.ElicitRequestFormParams(form) ? form : undefined;
}

const objectSchema = z.record(z.string(), z.unknown());
const asObject = (value: unknown) => objectSchema.safeParse(value).data ?? {};

/** What the client's user did with a form. */
export const formResultSchema = z.object({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.record(z.string(), z.unknown()).optional(),
});

/** What a filled-in form says. Anything but an explicit yes denies the call. */
export function answerOf(
  { kind }: Question,
  { action, content = {} }: z.output<typeof formResultSchema>,
): InteractionAnswer {
  if (kind === "user_approval") return { approved: action === "accept" && content.approved === true };
  return action === "accept" ? { output: content } : { output: "declined", isError: true };
}
