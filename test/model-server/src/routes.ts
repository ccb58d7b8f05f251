import type { IncomingHttpHeaders } from "node:http";
import { anthropic } from "./api/anthropic.js";
import { gemini } from "./api/gemini.js";
import type { ModelApi, RequestTarget } from "./api/model-api.js";
import { openaiChat } from "./api/openai-chat.js";
import { openaiResponses } from "./api/openai-responses.js";
import type { ApiName } from "./turn.js";

export type Operation = "generate" | "count-tokens" | "list-models" | "unknown";

export interface Route {
  readonly api: ApiName;
  readonly operation: Operation;
  readonly target: RequestTarget;
}

export const APIS: Readonly<Record<ApiName, ModelApi>> = {
  anthropic,
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  gemini,
};

/**
 * The API and operation of a request. Only the end of the path counts: base addresses have a `/v1` or not. For an unknown
 * path it is the API whose error shape the sender most likely reads.
 */
export function routeOf(method: string, path: string, headers: IncomingHttpHeaders): Route {
  const geminiCall = /\/models\/([^/:]+):(streamGenerateContent|generateContent|countTokens)$/.exec(path);
  if (method === "POST" && geminiCall?.[1] !== undefined) {
    const operation = geminiCall[2] === "countTokens" ? "count-tokens" : "generate";
    const target = {
      model: decodeURIComponent(geminiCall[1]),
      streamed: geminiCall[2] === "streamGenerateContent",
    };
    return { api: "gemini", operation, target };
  }
  const route = (api: ApiName, operation: Operation): Route => ({ api, operation, target: {} });
  if (method === "POST") {
    if (path.endsWith("/messages")) return route("anthropic", "generate");
    if (path.endsWith("/messages/count_tokens")) return route("anthropic", "count-tokens");
    if (path.endsWith("/chat/completions")) return route("openai-chat", "generate");
    if (path.endsWith("/responses")) return route("openai-responses", "generate");
  }
  const operation = method === "GET" && path.endsWith("/models") ? "list-models" : "unknown";
  if (path.includes("/v1beta/")) return route("gemini", operation);
  return route(headers["anthropic-version"] === undefined ? "openai-chat" : "anthropic", operation);
}
