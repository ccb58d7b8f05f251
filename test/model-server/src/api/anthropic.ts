import { z } from "zod";
import { type ConversationEntry, plainText, readConversation } from "../conversation.js";
import type { OfferedTool } from "../turn.js";
import { type Frame, freshId, inTwoPieces, type ModelApi, type Reply } from "./model-api.js";

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  tool_use_id: z.string().optional(),
  content: z.unknown().optional(),
});
const request = z.looseObject({
  model: z.string(),
  max_tokens: z.number(),
  stream: z.boolean().default(false),
  messages: z
    .array(z.looseObject({ role: z.string(), content: z.union([z.string(), z.array(block)]) }))
    .min(1),
  tools: z.array(z.looseObject({ name: z.string(), input_schema: z.unknown().optional() })).default([]),
});

/** Source: Anthropic API reference, "Messages", "Streaming messages" and "Errors", version 2023-06-01. */
export const anthropic: ModelApi = {
  readTurn(body) {
    const { model, stream, messages, tools } = request.parse(body);
    const entries = messages
      .filter((message) => message.role === "user")
      .flatMap(({ content }) =>
        typeof content === "string" ? [{ userText: content }] : content.flatMap(entryOf),
      );
    // A tool without a schema is one of Anthropic's own, which runs on their side.
    const offered = tools
      .filter((tool) => tool.input_schema !== undefined)
      .map((tool): OfferedTool => ({ name: tool.name, form: "function", inputSchema: tool.input_schema }));
    return { api: "anthropic", model, streamed: stream, tools: offered, ...readConversation(entries) };
  },

  completion(reply) {
    return {
      ...envelope(reply),
      content: contentOf(reply),
      stop_reason: stopReason(reply),
      usage: usageOf(reply),
    };
  },

  *frames(reply) {
    yield frame("message_start", {
      message: {
        ...envelope(reply),
        content: [],
        stop_reason: null,
        usage: { ...usageOf(reply), output_tokens: 1 },
      },
    });
    let index = 0;
    for (const content of contentOf(reply)) {
      yield frame("content_block_start", { index, content_block: emptyBlock(content) });
      for (const [at, delta] of deltasOf(content, reply).entries()) {
        const sent = { ...frame("content_block_delta", { index, delta }), pauseMs: reply.pauseMs };
        yield content.type === "tool_use" && at > 0 ? { ...sent, tail: "rest" } : sent;
      }
      yield frame("content_block_stop", { index });
      index += 1;
    }
    const finish = frame("message_delta", {
      delta: { stop_reason: stopReason(reply), stop_sequence: null },
      usage: { output_tokens: reply.usage.output },
    });
    yield { ...finish, tail: "finish" };
    yield frame("message_stop", {});
  },

  tokenCount: () => ({ input_tokens: 1000 }),

  modelList: (models) => ({
    data: models.map((id) => ({ type: "model", id, display_name: id, created_at: "2026-01-01T00:00:00Z" })),
    has_more: false,
    first_id: models.at(0) ?? null,
    last_id: models.at(-1) ?? null,
  }),

  error: (status, message) => ({
    type: "error",
    error: { type: ERROR_TYPES[status] ?? (status < 500 ? "invalid_request_error" : "api_error"), message },
    request_id: freshId("req_"),
  }),
};

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

type Content =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown };

function entryOf(part: z.infer<typeof block>): readonly ConversationEntry[] {
  if (part.type === "tool_result") {
    return [{ toolResult: { callId: part.tool_use_id ?? "", text: plainText(part.content) } }];
  }
  return part.type === "text" && part.text !== undefined ? [{ userText: part.text }] : [];
}

function envelope(reply: Reply) {
  const id = freshId("msg_");
  return { id, type: "message", role: "assistant", model: reply.model, stop_sequence: null };
}

function contentOf(reply: Reply): readonly Content[] {
  const text = reply.chunks.join("");
  return [
    ...(reply.thought === ""
      ? []
      : [{ type: "thinking" as const, thinking: reply.thought, signature: "c2NyaXB0ZWQ=" }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...reply.calls.map(({ tool, input }) => ({
      type: "tool_use" as const,
      id: freshId("toolu_"),
      name: tool.name,
      input,
    })),
  ];
}

function emptyBlock(content: Content): Content {
  switch (content.type) {
    case "thinking":
      return { type: "thinking", thinking: "", signature: "" };
    case "text":
      return { type: "text", text: "" };
    case "tool_use":
      return { ...content, input: {} };
  }
}

function deltasOf(content: Content, reply: Reply): readonly object[] {
  switch (content.type) {
    case "thinking":
      return [
        { type: "thinking_delta", thinking: content.thinking },
        { type: "signature_delta", signature: content.signature },
      ];
    case "text":
      return reply.chunks.map((text) => ({ type: "text_delta", text }));
    case "tool_use":
      return inTwoPieces(JSON.stringify(content.input)).map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      }));
  }
}

function stopReason(reply: Reply): string | null {
  if (reply.end !== "finished") return reply.end === "cut" ? null : "max_tokens";
  return reply.calls.length > 0 ? "tool_use" : "end_turn";
}

/** Anthropic counts cached tokens separately from the input. */
function usageOf({ usage }: Reply) {
  return {
    input_tokens: usage.input - usage.cachedInput,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedInput,
    output_tokens: usage.output,
  };
}

function frame(type: string, fields: object): Frame {
  return { event: type, data: JSON.stringify({ type, ...fields }) };
}
