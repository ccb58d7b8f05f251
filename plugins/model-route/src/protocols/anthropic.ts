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

const calls: Readonly<Record<string, "generate" | "count-tokens" | "list">> = {
  "POST /v1/messages": "generate",
  "POST /v1/messages/count_tokens": "count-tokens",
  "GET /v1/models": "list",
};

/** In a document, at the end of a stream, and at its beginning, where it is null. */
export const anthropicFinishPaths = ["stop_reason", "delta.stop_reason", "message.stop_reason"];

/** Anthropic's Messages API. */
export const anthropic: Protocol = {
  read: ({ method, pathname, search }) => {
    const kind = calls[`${method} ${pathname}`];
    if (kind === undefined) return unknownCall;
    const query = queryOf(search, { beta: /^true$/, limit: /^\d{1,4}$/ });
    return typeof query === "string" ? { kind, path: pathname, query } : query;
  },
  requestHeaders: ["anthropic-version", "anthropic-beta", "x-app"],
  usagePaths: ["usage", "message.usage"],
  count: countAnthropic,
  finishPaths: anthropicFinishPaths,
  finish: finishAnthropic,
  issues: () => [],
  authorization,
  headers: () => ({ "anthropic-version": "2023-06-01" }),
};

export function finishAnthropic(path: string, value: unknown): Finish | undefined {
  if (!anthropicFinishPaths.includes(path)) return undefined;
  return finishOf(value, ["max_tokens", "model_context_window_exceeded"]);
}

/** Input tokens are reported in three disjoint counts; later events of a stream report only those that have changed. */
export function countAnthropic(before: Counted, _path: string, usage: unknown): Counted {
  const read = countAt(usage, "cache_read_input_tokens");
  const written = countAt(usage, "cache_creation_input_tokens");
  const plain = countAt(usage, "input_tokens");
  return {
    input: Math.max(before.input, plain + read + written),
    cached: Math.max(before.cached, read),
    cacheWritten: Math.max(before.cacheWritten, written),
    output: Math.max(before.output, countAt(usage, "output_tokens")),
    // It counts no reasoning by itself.
    reasoning: 0,
  };
}

function authorization({ credentials }: ModelUse): Authorization | undefined {
  const { ANTHROPIC_API_KEY, CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_AUTH_TOKEN } = credentials;
  const key = ANTHROPIC_API_KEY;
  if (key !== undefined) return fixedHeaders({ "x-api-key": key });
  const token = ANTHROPIC_AUTH_TOKEN ?? CLAUDE_CODE_OAUTH_TOKEN;
  if (token !== undefined) return fixedHeaders({ authorization: `Bearer ${token}` });
  const [other] = Object.values(credentials);
  return other === undefined ? undefined : fixedHeaders({ "x-api-key": other });
}
