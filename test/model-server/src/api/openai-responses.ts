import { z } from "zod";
import { type ConversationEntry, plainText, readConversation, userEntries } from "../conversation.js";
import { type OfferedTool, qualifiedName } from "../turn.js";
import { type Frame, freshId, type ModelApi, type Reply, unixSeconds } from "./model-api.js";
import { openaiError, openaiModelList } from "./openai.js";
import { type ItemEvent, itemFrames, outputItems } from "./responses-items.js";

const functionTool = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  parameters: z.unknown().optional(),
});
const tools = z.array(functionTool.extend({ tools: z.array(functionTool).optional() }));
const item = z.looseObject({
  type: z.string().default("message"),
  role: z.string().optional(),
  content: z.unknown().optional(),
  output: z.unknown().optional(),
  call_id: z.string().optional(),
  /** The tools in a `tool_search_output`, which the model may call from then on. */
  tools: tools.optional(),
});
const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  input: z.union([z.string(), z.array(item)]),
  tools: tools.nullish(),
});

/** Source: OpenAI API reference, "Responses" and its streaming events; namespaces as Codex sends them. */
export const openaiResponses: ModelApi = {
  readTurn(body) {
    const { model, stream, input, tools: first } = request.parse(body);
    const items = typeof input === "string" ? [] : input;
    const entries = typeof input === "string" ? [{ userText: input }] : items.flatMap(entriesOf);
    const found = items.flatMap((entry) => entry.tools ?? []);
    return {
      api: "openai-responses",
      model,
      streamed: stream ?? false,
      tools: [...(first ?? []), ...found].flatMap(offeredTools),
      ...readConversation(entries),
    };
  },

  completion: (reply) => ({
    ...envelope(reply),
    ...statusOf(reply),
    output: outputItems(reply),
    usage: usageOf(reply),
  }),

  *frames(reply) {
    const head = envelope(reply);
    const output = outputItems(reply);
    let sequence_number = 0;
    const frame = ({ type, pauseMs = 0, tail, ...fields }: ItemEvent): Frame => ({
      event: type,
      data: JSON.stringify({ type, sequence_number: sequence_number++, ...fields }),
      pauseMs,
      ...(tail === undefined ? {} : { tail }),
    });
    const started = { ...head, status: "in_progress", output: [], usage: null };
    yield frame({ type: "response.created", response: started });
    yield frame({ type: "response.in_progress", response: started });
    for (const [output_index, finished] of output.entries()) {
      for (const event of itemFrames(finished, output_index, reply)) yield frame(event);
    }
    const { status, ...why } = statusOf(reply);
    // The call that it ends within isn't part of it.
    const whole = status === "incomplete" ? output.filter(({ type }) => type !== "function_call") : output;
    const response = { ...head, status, ...why, output: whole, usage: usageOf(reply) };
    yield frame({ type: `response.${status}`, response, tail: "finish" });
  },

  tokenCount: () => undefined,
  modelList: openaiModelList,
  error: openaiError,
};

function entriesOf({
  type,
  role,
  content,
  output,
  call_id,
  tools: found,
}: z.infer<typeof item>): readonly ConversationEntry[] {
  if (type === "tool_search_output") {
    const names = (found ?? []).flatMap(offeredTools).map(qualifiedName);
    return [{ toolResult: { callId: call_id ?? "", text: names.join("\n") } }];
  }
  if (type.endsWith("_call_output")) {
    return [{ toolResult: { callId: call_id ?? "", text: plainText(output) } }];
  }
  return type === "message" && role === "user" ? userEntries(content) : [];
}

function offeredTools(tool: z.infer<typeof tools>[number]): readonly OfferedTool[] {
  if (tool.type !== "namespace") return offeredTool(tool);
  return (tool.tools ?? []).flatMap((inner) => offeredTool(inner, tool.name));
}

/** Tools of any other type (web search, image generation) run on OpenAI's side. */
function offeredTool(tool: z.infer<typeof functionTool>, namespace?: string): OfferedTool[] {
  if (tool.type === "local_shell" || tool.type === "tool_search")
    return [{ name: tool.type, form: tool.type }];
  if (tool.name === undefined || (tool.type !== "function" && tool.type !== "custom")) return [];
  return [
    {
      name: tool.name,
      form: tool.type,
      ...(namespace === undefined ? {} : { namespace }),
      ...(tool.type === "function" ? { inputSchema: tool.parameters } : {}),
    },
  ];
}

function envelope(reply: Reply) {
  return {
    id: freshId("resp_"),
    object: "response",
    created_at: unixSeconds(),
    model: reply.model,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
  };
}

function statusOf({ end }: Reply) {
  if (end === "max_tokens")
    return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  return { status: end === "cut" ? "in_progress" : "completed" };
}

function usageOf({ usage }: Reply) {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cachedInput },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
}
