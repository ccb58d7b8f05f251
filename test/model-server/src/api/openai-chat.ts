import { z } from "zod";
import { type ConversationEntry, plainText, readConversation, userEntries } from "../conversation.js";
import type { OfferedTool } from "../turn.js";
import { type Frame, freshId, inTwoPieces, type ModelApi, type Reply, unixSeconds } from "./model-api.js";
import { openaiError, openaiModelList } from "./openai.js";

const message = z.looseObject({
  role: z.string(),
  content: z.unknown().optional(),
  tool_call_id: z.string().optional(),
});
const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  messages: z.array(message).min(1),
  tools: z
    .array(
      z.looseObject({
        function: z.looseObject({ name: z.string(), parameters: z.unknown().optional() }).optional(),
      }),
    )
    .nullish(),
});
const streamOptions = z.looseObject({
  stream_options: z.looseObject({ include_usage: z.boolean() }),
});

/** Source: OpenAI API reference, "Chat Completions". Thoughts are in `reasoning_content`, as with compatible servers. */
export const openaiChat: ModelApi = {
  readTurn(body) {
    const { model, stream, messages, tools } = request.parse(body);
    const offered = (tools ?? []).flatMap((tool): OfferedTool[] => {
      if (tool.function === undefined) return [];
      return [{ name: tool.function.name, form: "function", inputSchema: tool.function.parameters }];
    });
    return {
      api: "openai-chat",
      model,
      streamed: stream ?? false,
      tools: offered,
      ...readConversation(messages.flatMap(entriesOf)),
    };
  },

  completion(reply) {
    const toolCalls = toolCallsOf(reply);
    const text = reply.chunks.join("");
    return {
      ...envelope(reply, "chat.completion"),
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: text === "" ? null : text,
            ...(reply.thought === "" ? {} : { reasoning_content: reply.thought }),
            ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
          },
          finish_reason: finishReason(reply),
        },
      ],
      usage: usageOf(reply),
    };
  },

  *frames(reply, body) {
    const head = envelope(reply, "chat.completion.chunk");
    const chunk = (delta: object, finish_reason: string | null = null): Frame => ({
      data: JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] }),
    });
    yield chunk({ role: "assistant", content: "" });
    if (reply.thought !== "") yield chunk({ reasoning_content: reply.thought });
    for (const content of reply.chunks) yield { ...chunk({ content }), pauseMs: reply.pauseMs };
    for (const [index, toolCall] of toolCallsOf(reply).entries()) {
      const { name, arguments: json } = toolCall.function;
      yield chunk({ tool_calls: [{ ...toolCall, index, function: { name, arguments: "" } }] });
      const [first, rest] = inTwoPieces(json).map((piece) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      );
      if (first !== undefined) yield first;
      if (rest !== undefined) yield { ...rest, tail: "rest" };
    }
    yield { ...chunk({}, finishReason(reply)), tail: "finish" };
    // Only on request: it has no `choices`, which breaks clients that don't expect that.
    if (streamOptions.safeParse(body).data?.stream_options.include_usage) {
      yield { data: JSON.stringify({ ...head, choices: [], usage: usageOf(reply) }) };
    }
    yield { data: "[DONE]" };
  },

  tokenCount: () => undefined,
  modelList: openaiModelList,
  error: openaiError,
};

function entriesOf({ role, content, tool_call_id }: z.infer<typeof message>): readonly ConversationEntry[] {
  if (role === "tool") return [{ toolResult: { callId: tool_call_id ?? "", text: plainText(content) } }];
  return role === "user" ? userEntries(content) : [];
}

function envelope(reply: Reply, object: string) {
  return { id: freshId("chatcmpl-"), object, created: unixSeconds(), model: reply.model };
}

function toolCallsOf(reply: Reply) {
  return reply.calls.map(({ tool, input }) => ({
    id: freshId("call_"),
    type: "function",
    function: { name: tool.name, arguments: JSON.stringify(input) },
  }));
}

function finishReason(reply: Reply): string | null {
  if (reply.end !== "finished") return reply.end === "cut" ? null : "length";
  return reply.calls.length > 0 ? "tool_calls" : "stop";
}

function usageOf({ usage }: Reply) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput },
  };
}
