import { z } from "zod";
import { type ConversationEntry, plainText, readConversation } from "../conversation.js";
import type { OfferedTool } from "../turn.js";
import { type Frame, freshId, type ModelApi, type Reply } from "./model-api.js";

const part = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  functionResponse: z
    .looseObject({ id: z.string().optional(), name: z.string(), response: z.unknown().optional() })
    .optional(),
});
const declaration = z.looseObject({
  name: z.string(),
  parameters: z.unknown().optional(),
  parametersJsonSchema: z.unknown().optional(),
});
const request = z.looseObject({
  contents: z
    .array(z.looseObject({ role: z.string().default("user"), parts: z.array(part).default([]) }))
    .min(1),
  tools: z.array(z.looseObject({ functionDeclarations: z.array(declaration).default([]) })).default([]),
});

/** Source: Gemini API reference, `models.generateContent`, `models.streamGenerateContent` with `alt=sse`. */
export const gemini: ModelApi = {
  readTurn(body, target) {
    const { contents, tools } = request.parse(body);
    const entries = contents
      .filter((content) => content.role !== "model")
      .flatMap((content) => content.parts.flatMap(entryOf));
    const offered = tools
      .flatMap((tool) => tool.functionDeclarations)
      .map(
        (tool): OfferedTool => ({
          name: tool.name,
          form: "function",
          inputSchema: tool.parametersJsonSchema ?? tool.parameters,
        }),
      );
    return {
      api: "gemini",
      model: target.model ?? "",
      streamed: target.streamed ?? false,
      tools: offered,
      ...readConversation(entries),
    };
  },

  completion(reply) {
    const text = reply.chunks.join("");
    const parts = [...thoughtParts(reply), ...(text === "" ? [] : [{ text }]), ...callParts(reply)];
    return response(reply, freshId(""), parts, finishReason(reply));
  },

  *frames(reply) {
    const responseId = freshId("");
    const chunk = (parts: readonly object[], finishReason?: string): Frame => ({
      data: JSON.stringify(response(reply, responseId, parts, finishReason)),
    });
    for (const thought of thoughtParts(reply)) yield chunk([thought]);
    for (const text of reply.chunks) yield { ...chunk([{ text }]), pauseMs: reply.pauseMs };
    // A call comes in one piece: a response that ends within one has none.
    if (reply.calls.length > 0) yield { ...chunk(callParts(reply)), tail: "rest" };
    yield { ...chunk([{ text: "" }], finishReason(reply)), tail: "finish" };
  },

  tokenCount: () => ({ totalTokens: 1000 }),

  modelList: (models) => ({
    models: models.map((id) => ({
      name: `models/${id}`,
      displayName: id,
      inputTokenLimit: 128_000,
      outputTokenLimit: 8192,
      supportedGenerationMethods: ["generateContent", "countTokens"],
    })),
  }),

  error: (status, message) => ({
    error: {
      code: status,
      message,
      status: ERROR_STATUSES[status] ?? (status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE"),
    },
  }),
};

const ERROR_STATUSES: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  504: "DEADLINE_EXCEEDED",
};

function entryOf({ text, thought, functionResponse }: z.infer<typeof part>): readonly ConversationEntry[] {
  if (functionResponse !== undefined) {
    const callId = functionResponse.id ?? functionResponse.name;
    return [{ toolResult: { callId, text: plainText(functionResponse.response) } }];
  }
  return text !== undefined && thought !== true ? [{ userText: text }] : [];
}

function thoughtParts(reply: Reply): readonly object[] {
  return reply.thought === "" ? [] : [{ text: reply.thought, thought: true }];
}

function finishReason({ end }: Reply): string | undefined {
  if (end === "cut") return undefined;
  return end === "max_tokens" ? "MAX_TOKENS" : "STOP";
}

function callParts(reply: Reply): readonly object[] {
  return reply.calls.map(({ tool, input }) => ({ functionCall: { name: tool.name, args: input } }));
}

function response(reply: Reply, responseId: string, parts: readonly object[], finishReason?: string) {
  const { usage } = reply;
  return {
    candidates: [
      {
        content: { role: "model", parts },
        index: 0,
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
    usageMetadata: {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cachedInput,
      candidatesTokenCount: usage.output,
      totalTokenCount: usage.input + usage.output,
    },
    modelVersion: reply.model,
    responseId,
  };
}
