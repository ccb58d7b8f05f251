import type { ModelProtocol, ModelUse } from "@ambit/core/plugin";

/** One provider's API; the kit simulates both its ends. */
export interface KitApi {
  readonly protocol: ModelProtocol;
  readonly basePath: string;
  /** Of a call that a run pays for. */
  readonly path: string;
  body(model: string): string;
  /** The path of a call with another model. */
  pathOf(model: string): string;
  /** Whether the body names the model. */
  readonly namesModelInBody: boolean;
  readonly credential: string;
  /** The header for the key at the endpoint, and the prefix of its value. */
  readonly keyHeader: readonly [name: string, prefix: string];
  /** A whole response that counts 100 tokens in, 40 of them cached, and 7 out. */
  readonly answer: object;
}

export const kitModel = "kit-model-1";

const openai = {
  protocol: "openai",
  basePath: "/v1",
  credential: "OPENAI_API_KEY",
  namesModelInBody: true,
  keyHeader: ["authorization", "Bearer "],
} as const;

export const kitApis: readonly KitApi[] = [
  {
    protocol: "anthropic",
    basePath: "",
    path: "/v1/messages",
    pathOf: () => "/v1/messages",
    body: (model) => JSON.stringify({ model, max_tokens: 9, messages: [] }),
    namesModelInBody: true,
    credential: "ANTHROPIC_API_KEY",
    keyHeader: ["x-api-key", ""],
    answer: {
      content: [],
      stop_reason: "end_turn",
      usage: { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 7 },
    },
  },
  {
    ...openai,
    path: "/v1/responses",
    pathOf: () => "/v1/responses",
    body: (model) => JSON.stringify({ model, input: "hi" }),
    answer: {
      status: "completed",
      usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 40 }, output_tokens: 7 },
    },
  },
  {
    ...openai,
    path: "/v1/chat/completions",
    pathOf: () => "/v1/chat/completions",
    body: (model) => JSON.stringify({ model, messages: [] }),
    answer: {
      choices: [{ finish_reason: "stop" }],
      usage: { prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 40 }, completion_tokens: 7 },
    },
  },
  {
    protocol: "gemini",
    basePath: "",
    path: geminiPath(kitModel),
    pathOf: geminiPath,
    body: () => JSON.stringify({ contents: [] }),
    namesModelInBody: false,
    credential: "GEMINI_API_KEY",
    keyHeader: ["x-goog-api-key", ""],
    answer: {
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 100, cachedContentTokenCount: 40, candidatesTokenCount: 7 },
    },
  },
];

function geminiPath(model: string): string {
  return `/v1beta/models/${model}:generateContent`;
}

export function useOf(api: KitApi, origin: string, key: string): ModelUse {
  const { protocol, basePath, credential } = api;
  return {
    protocol,
    basePath,
    endpoint: `${origin}${basePath}`,
    credentials: { [credential]: key },
    headers: {},
    model: kitModel,
    auxiliaryModels: [],
  };
}
