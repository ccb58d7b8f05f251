import type { ModelUse } from "@ambit/core/plugin";
import {
  type Authorization,
  type Counted,
  countAt,
  type Finish,
  finishOf,
  fixedHeaders,
  type Protocol,
  queryOf,
  unknownCall,
} from "./protocol.js";

const calls: Readonly<Record<string, "generate" | "list">> = {
  "POST /v1/responses": "generate",
  "POST /v1/chat/completions": "generate",
  "GET /v1/models": "list",
};

/** OpenAI's Responses and Chat Completions, and compatible APIs. */
export const openai: Protocol = {
  read: ({ method, pathname, search }) => {
    // Codex tries a WebSocket first, and uses POST at once after this response.
    if (method === "GET" && pathname === "/v1/responses") {
      return { status: 426, reason: "WebSocket is not supported; use POST" };
    }
    const kind = calls[`${method} ${pathname}`];
    if (kind === undefined) return unknownCall;
    const query = queryOf(search, { "api-version": /^[\w.-]{1,40}$/, client_version: /^[\w.-]{1,40}$/ });
    return typeof query === "string" ? { kind, path: pathname, query } : query;
  },
  // The last four keep a conversation's requests together, for the provider's cache.
  requestHeaders: [
    "openai-beta",
    "originator",
    "version",
    "session_id",
    "conversation_id",
    "session-id",
    "thread-id",
  ],
  usagePaths: ["usage", "response.usage"],
  count: (before, _path, usage): Counted => ({
    input: Math.max(before.input, countAt(usage, "input_tokens"), countAt(usage, "prompt_tokens")),
    cached: Math.max(
      before.cached,
      countAt(usage, "input_tokens_details", "cached_tokens"),
      countAt(usage, "prompt_tokens_details", "cached_tokens"),
    ),
    cacheWritten: 0,
    output: Math.max(before.output, countAt(usage, "output_tokens"), countAt(usage, "completion_tokens")),
    reasoning: Math.max(
      before.reasoning,
      countAt(usage, "output_tokens_details", "reasoning_tokens"),
      countAt(usage, "completion_tokens_details", "reasoning_tokens"),
    ),
  }),
  finishPaths: [
    "choices[].finish_reason",
    "status",
    "response.status",
    "incomplete_details",
    "response.incomplete_details",
  ],
  finish: (path, value) => {
    if (path === "choices[].finish_reason") return finishOf(value, ["length"]);
    if (path.endsWith("incomplete_details")) return isAtLimit(value) ? "max_tokens" : undefined;
    return typeof value === "string" ? statuses[value] : undefined;
  },
  // Some compatible servers know no `finish_reason`, and end their streams as OpenAI does.
  lastLine: /data: ?\[DONE\]\s*$/,
  maySkip: (path) => (path.endsWith("/chat/completions") ? "finish_reason" : undefined),
  issues: () => [],
  authorization,
};

/** Of a response (Responses API), by its `status`. */
const statuses: Readonly<Record<string, Finish>> = {
  queued: "open",
  in_progress: "open",
  completed: "whole",
  incomplete: "whole",
  failed: "failed",
  cancelled: "failed",
};

function isAtLimit(details: unknown): boolean {
  return (
    typeof details === "object" &&
    details !== null &&
    "reason" in details &&
    details.reason === "max_output_tokens"
  );
}

function authorization({ credentials }: ModelUse): Authorization | undefined {
  const { AZURE_OPENAI_API_KEY } = credentials;
  if (AZURE_OPENAI_API_KEY !== undefined) return fixedHeaders({ "api-key": AZURE_OPENAI_API_KEY });
  const [key] = Object.values(credentials);
  return key === undefined ? undefined : fixedHeaders({ authorization: `Bearer ${key}` });
}
