import type { InteractionAnswer, RunRequest } from "@ambit/client";
import { RequestInvalid, validBody } from "@ambit/core/plugin";
import { z } from "zod";
import { type AskedPart, questionPrefix } from "./message.js";

type Block = Exclude<NonNullable<RunRequest["messages"]>[number]["content"], string | undefined>[number];

/** An answer of the browser's user to a question, as the browser says. Whether Ambit asked it is for Ambit to say. */
export interface BrowserAnswer {
  readonly questionId: string;
  readonly answer: InteractionAnswer;
}

/** What a door takes from `POST /ai-sdk/chat`. All else that the body says of the past is the browser's own view. */
export interface ChatBody {
  readonly chatId: string;
  /** The last message, where it is the user's. */
  readonly said: readonly Block[] | undefined;
  /** The last message of the assistant, which answers continue. */
  readonly answered: {
    readonly messageId: string;
    readonly answers: readonly BrowserAnswer[];
    readonly parts: readonly AskedPart[];
  };
  /** Fields of the request for the run, which only a platform may send. */
  readonly request: Readonly<Record<string, unknown>> | undefined;
}

const maxIdCharacters = 256;
/** More than a run asks: the others are those of earlier runs of the message. */
const maxAnswers = 64;
const id = z.string().min(1).max(maxIdCharacters);

const bodySchema = z.looseObject({
  id,
  messages: z.array(z.looseObject({ role: z.enum(["system", "user", "assistant"]) })).min(1),
  ambit: z.record(z.string(), z.unknown()).optional(),
});

const userSchema = z.looseObject({
  parts: z
    .array(
      z.union([
        z.looseObject({ type: z.literal("text"), text: z.string() }),
        z.looseObject({
          type: z.literal("file"),
          url: z.string(),
          mediaType: z.string(),
          filename: z.string().optional(),
        }),
        // Data of the page's own, for its own eyes.
        z.looseObject({ type: z.string().regex(/^data-/) }),
      ]),
    )
    .min(1),
});

const toolPartSchema = z.looseObject({
  type: z.string().regex(/^(tool-|dynamic-tool$)/),
  toolCallId: id,
  state: z.string(),
  approval: z.looseObject({ id, approved: z.boolean().optional() }).optional(),
  output: z.unknown().optional(),
  errorText: z.string().optional(),
});
type ToolPart = z.infer<typeof toolPartSchema>;

const assistantSchema = z.looseObject({ id, parts: z.array(z.unknown()) });

/** @throws RequestInvalid */
export function readBody(body: unknown): ChatBody {
  const { id: chatId, messages, ambit: request } = validBody(bodySchema, body);
  const last = messages.length - 1;
  const said = messages[last]?.role === "user" ? saidIn(messages[last], last) : undefined;
  const index = messages.findLastIndex(({ role }) => role === "assistant");
  if (said === undefined && index !== last)
    throw new RequestInvalid([
      { path: `messages[${last}].role`, message: "the last message must be the user's, or have the answers" },
    ]);
  const answered =
    index === -1 ? { messageId: "", answers: [], parts: [] } : answersIn(messages[index], index);
  return { chatId, said, answered, request };
}

function saidIn(message: unknown, index: number): Block[] {
  const { parts } = validBody(userSchema, message, ["messages", index]);
  const blocks = parts.flatMap((part): Block[] => {
    if (part.type === "text" && "text" in part) return [{ type: "text", text: String(part.text) }];
    if (part.type !== "file" || !("url" in part)) return [];
    const { url, mediaType, filename } = z
      .looseObject({ url: z.string(), mediaType: z.string(), filename: z.string().optional() })
      .parse(part);
    return [{ type: "file", uri: url, mimeType: mediaType, ...(filename === undefined ? {} : { filename }) }];
  });
  if (blocks.some(({ type, text = "" }) => type !== "text" || text.trim() !== "")) return blocks;
  throw new RequestInvalid([{ path: `messages[${index}].parts`, message: "have neither a text nor a file" }]);
}

function answersIn(message: unknown, index: number): ChatBody["answered"] {
  const { id: messageId, parts } = validBody(assistantSchema, message, ["messages", index]);
  const tools = parts.flatMap((part): ToolPart[] => {
    const read = toolPartSchema.safeParse(part);
    return read.success ? [read.data] : [];
  });
  const askedTools = tools.filter(({ toolCallId, approval }) =>
    (approval?.id ?? toolCallId).startsWith(questionPrefix),
  );
  return {
    messageId,
    answers: askedTools.flatMap(answersOf).slice(-maxAnswers),
    parts: askedTools.map(({ toolCallId, approval }) => ({
      toolCallId,
      ...(approval === undefined ? {} : { approvalId: approval.id }),
    })),
  };
}

/** Part by part: an approval that was responded to, or the output of a call that the browser executed. */
function answersOf({ toolCallId, state, approval, output, errorText }: ToolPart): BrowserAnswer[] {
  switch (state) {
    case "approval-responded":
      return approval?.approved === undefined
        ? []
        : [{ questionId: approval.id, answer: { approved: approval.approved } }];
    case "output-available":
      return approval === undefined
        ? [{ questionId: toolCallId, answer: { output: output ?? null, isError: false } }]
        : [];
    case "output-error":
      return approval === undefined
        ? [{ questionId: toolCallId, answer: { output: errorText ?? "", isError: true } }]
        : [];
    default:
      return [];
  }
}
