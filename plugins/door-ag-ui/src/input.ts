import type { InteractionAnswer, RunRequest } from "@ambit/client";
import { validBody } from "@ambit/core/plugin";
import { z } from "zod";
import type { Json } from "./events.js";

type Block = Exclude<NonNullable<RunRequest["messages"]>[number]["content"], string | undefined>[number];
type Tool = NonNullable<RunRequest["customTools"]>[number];

/** An answer to an interrupt, as the client says. Whether Ambit asked it, and what for, is for Ambit to say. */
export interface Resumed {
  readonly interruptId: string;
  readonly isCancelled: boolean;
  readonly payload: unknown;
}

/** What the door takes from a `RunAgentInput`. All else that it says of the past is the client's own view. */
export interface AgUiInput {
  readonly threadId: string;
  readonly runId: string;
  /** The last message, where it is the user's, after what the application says about it. */
  readonly said: readonly Block[] | undefined;
  readonly resumed: readonly Resumed[];
  /** Results of the application's own tools, by the ids of their calls. */
  readonly toolResults: ReadonlyMap<string, InteractionAnswer>;
  /** The application's own tools, as tools of the request. */
  readonly tools: readonly Tool[];
  /** The application's state, to which the agent's plan is added. Undefined where it isn't an object. */
  readonly state: Json | undefined;
  /** Fields of the request for the run, which only a platform may send. */
  readonly request: Json | undefined;
}

/** The beginning of every id that Ambit gives to a question, and to the call that it is about. */
const questionPrefix = "ask_";
const maxIdCharacters = 256;
/** More than one run asks. */
const maxAnswers = 64;
const id = z.string().min(1).max(maxIdCharacters);
const json = z.record(z.string(), z.unknown());

const inputSchema = z.looseObject({
  threadId: id,
  runId: id,
  messages: z.array(z.looseObject({ role: z.string() })),
  tools: z
    .array(
      z.looseObject({ name: z.string(), description: z.string().optional(), parameters: json.optional() }),
    )
    .default([]),
  context: z.array(z.looseObject({ description: z.string(), value: z.string() })).default([]),
  state: z.unknown().optional(),
  forwardedProps: z.looseObject({ ambit: json.optional() }).nullish(),
  resume: z
    .array(
      z.looseObject({
        interruptId: id,
        status: z.enum(["resolved", "cancelled"]),
        payload: z.unknown().optional(),
      }),
    )
    .max(maxAnswers)
    .nullish(),
});

const sourceSchema = z.looseObject({
  type: z.enum(["data", "url"]),
  value: z.string(),
  mimeType: z.string().optional(),
});
const contentSchema = z.union([
  z.string(),
  z
    .array(
      z.union([
        z.looseObject({ type: z.literal("text"), text: z.string() }),
        z.looseObject({ type: z.enum(["image", "audio", "document"]), source: sourceSchema }),
      ]),
    )
    .min(1),
]);
const toolMessageSchema = z.looseObject({
  toolCallId: id,
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]),
  error: z.string().optional(),
});

/** @throws RequestInvalid */
export function readInput(body: unknown): AgUiInput {
  const input = validBody(inputSchema, body);
  const { threadId, runId, messages, tools, context, forwardedProps, resume } = input;
  const last = messages.length - 1;
  const said = messages[last]?.role === "user" ? saidIn(messages[last], last) : undefined;
  const afterAssistant = messages.findLastIndex(({ role }) => role === "assistant") + 1;
  const toolResults = messages.flatMap((message, index): [string, InteractionAnswer][] =>
    index >= afterAssistant && message.role === "tool" ? [resultIn(message, index)] : [],
  );
  const answers = toolResults.filter(([callId]) => callId.startsWith(questionPrefix));
  const about = context.map(
    ({ description, value }): Block => ({ type: "text", text: `${description}: ${value}` }),
  );
  const state = json.safeParse(input.state);
  return {
    threadId,
    runId,
    said: said === undefined ? undefined : [...about, ...said],
    resumed: (resume ?? []).map(({ interruptId, status, payload }) => ({
      interruptId,
      isCancelled: status === "cancelled",
      payload,
    })),
    toolResults: new Map(answers.slice(-maxAnswers)),
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      kind: "client",
      ...(description === undefined ? {} : { description }),
      inputSchema: parameters ?? { type: "object" },
    })),
    state: state.success ? state.data : undefined,
    request: forwardedProps?.ambit,
  };
}

function saidIn(message: unknown, index: number): Block[] {
  const { content } = validBody(z.looseObject({ content: contentSchema }), message, ["messages", index]);
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part): Block => {
    if ("text" in part) return { type: "text", text: String(part.text) };
    const { type, value, mimeType } = sourceSchema.parse(part.source);
    const mime = mimeType === undefined ? {} : { mimeType };
    return { type: "file", ...(type === "url" ? { uri: value } : { data: value }), ...mime };
  });
}

function resultIn(message: unknown, index: number): [string, InteractionAnswer] {
  const { toolCallId, content, error } = validBody(toolMessageSchema, message, ["messages", index]);
  const text = typeof content === "string" ? content : content.map(({ text: part = "" }) => part).join("");
  if (error !== undefined) return [toolCallId, { output: error, isError: true }];
  return [toolCallId, { output: parsed(text), isError: false }];
}

/** Applications send their tools' results as text, most of them as JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
