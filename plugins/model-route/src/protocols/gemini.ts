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

const call = /^\/(v1|v1beta)\/models\/([\w.-]{1,200}):(generateContent|streamGenerateContent|countTokens)$/;

/** The second is the reason for an answer that was never begun. */
export const geminiFinishPaths = ["candidates[].finishReason", "promptFeedback.blockReason"];

/** Google's Gemini API. */
export const gemini: Protocol = {
  read: ({ method, pathname, search }) => {
    const query = queryOf(search, { alt: /^sse$/, pageSize: /^\d{1,4}$/ });
    if (typeof query !== "string") return query;
    if (method === "GET" && /^\/(v1|v1beta)\/models$/.test(pathname))
      return { kind: "list", path: pathname, query };
    const [, , model, verb] = call.exec(pathname) ?? [];
    if (method !== "POST" || model === undefined) return unknownCall;
    return { kind: verb === "countTokens" ? "count-tokens" : "generate", path: pathname, query, model };
  },
  requestHeaders: ["x-goog-api-client"],
  usagePaths: ["usageMetadata"],
  count: countGemini,
  finishPaths: geminiFinishPaths,
  finish: finishGemini,
  issues: () => [],
  authorization,
};

/** Each piece of an answer has its usage; the last one its finish. */
export function finishGemini(path: string, value: unknown): Finish | undefined {
  if (path === "usagemetadata") return "open";
  return finishOf(value, ["MAX_TOKENS"]);
}

/** Each piece of a stream contains the total so far. Tokens for thoughts and tool use are counted separately. */
export function countGemini(before: Counted, _path: string, usage: unknown): Counted {
  const input = countAt(usage, "promptTokenCount") + countAt(usage, "toolUsePromptTokenCount");
  const reasoning = countAt(usage, "thoughtsTokenCount");
  const output = countAt(usage, "candidatesTokenCount") + reasoning;
  return {
    input: Math.max(before.input, input),
    cached: Math.max(before.cached, countAt(usage, "cachedContentTokenCount")),
    cacheWritten: 0,
    output: Math.max(before.output, output),
    reasoning: Math.max(before.reasoning, reasoning),
  };
}

function authorization({ credentials }: ModelUse): Authorization | undefined {
  const [key] = Object.values(credentials);
  return key === undefined ? undefined : fixedHeaders({ "x-goog-api-key": key });
}
