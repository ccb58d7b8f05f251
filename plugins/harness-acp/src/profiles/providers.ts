import type { RunRequest } from "@ambit/core/plugin";
import type { ModelAccess } from "./profile.js";

/** A model's provider, in the configuration of agents with several. */
interface Provider extends ModelAccess {
  /** Its name in their configuration. */
  readonly id: string;
  /** Its names in requests. */
  readonly names: readonly [string, ...string[]];
  /** The package that implements its API in OpenCode, which includes it. */
  readonly npm: string;
  /** Pi's name for its API. */
  readonly api: string;
  /** The part of its paths that an endpoint's base URL doesn't include, but these agents' setting does. */
  readonly version: "" | "/v1" | "/v1beta";
  /** Whether it is used as any endpoint with Chat Completions: what an agent knows of it, it leaves aside. */
  readonly isGeneric: boolean;
}

type Own = Omit<Provider, "providers" | "names" | "isGeneric"> & Pick<Provider, "names">;

const own: readonly Own[] = [
  {
    id: "openai",
    names: ["openai", "openai-codex"],
    npm: "@ai-sdk/openai-compatible",
    api: "openai-completions",
    version: "",
    credentials: ["OPENAI_API_KEY"],
    defaultModel: "gpt-5.5",
    endpoint: { url: "https://api.openai.com/v1", variables: ["OPENAI_BASE_URL"] },
    route: { protocol: "openai" },
  },
  {
    id: "anthropic",
    names: ["anthropic"],
    npm: "@ai-sdk/anthropic",
    api: "anthropic-messages",
    version: "/v1",
    credentials: ["ANTHROPIC_API_KEY"],
    defaultModel: "claude-sonnet-5",
    endpoint: { url: "https://api.anthropic.com", variables: ["ANTHROPIC_BASE_URL"] },
    route: { protocol: "anthropic" },
  },
  {
    id: "google",
    names: ["google", "gemini", "google-ai"],
    npm: "@ai-sdk/google",
    api: "google-generative-ai",
    version: "/v1beta",
    credentials: ["GEMINI_API_KEY"],
    defaultModel: "gemini-2.5-flash",
    endpoint: {
      url: "https://generativelanguage.googleapis.com",
      variables: ["GOOGLE_GEMINI_BASE_URL"],
      excludes: "/v1beta",
    },
    route: { protocol: "gemini" },
  },
];

/** Providers with OpenAI's Chat Completions, by the names that Pi has for them. */
const compatible: readonly (Pick<Provider, "id" | "names" | "credentials" | "defaultModel"> & {
  readonly url: string;
})[] = [
  {
    id: "mistral",
    names: ["mistral", "mistralai"],
    credentials: ["MISTRAL_API_KEY"],
    defaultModel: "mistral-medium-latest",
    url: "https://api.mistral.ai/v1",
  },
  {
    id: "groq",
    names: ["groq"],
    credentials: ["GROQ_API_KEY"],
    defaultModel: "openai/gpt-oss-120b",
    url: "https://api.groq.com/openai/v1",
  },
  {
    id: "minimax",
    names: ["minimax"],
    credentials: ["MINIMAX_API_KEY"],
    defaultModel: "MiniMax-M3",
    url: "https://api.minimax.io/v1",
  },
  {
    id: "together",
    names: ["together_ai", "together"],
    credentials: ["TOGETHER_API_KEY"],
    defaultModel: "moonshotai/Kimi-K3",
    url: "https://api.together.xyz/v1",
  },
  {
    id: "openrouter",
    names: ["openrouter"],
    credentials: ["OPENROUTER_API_KEY"],
    defaultModel: "openai/gpt-6-sol",
    url: "https://openrouter.ai/api/v1",
  },
  {
    id: "xai",
    names: ["xai"],
    credentials: ["XAI_API_KEY"],
    defaultModel: "grok-4.6",
    url: "https://api.x.ai/v1",
  },
];

const allNames = [...own, ...compatible].flatMap(({ names }) => names);

const providers: readonly Provider[] = [
  ...own.map((one) => ({ ...one, providers: allNames, prefixes: one.names, isGeneric: false })),
  ...compatible.map(({ url, ...one }) => ({
    ...one,
    npm: "@ai-sdk/openai-compatible",
    api: "openai-completions",
    version: "" as const,
    providers: allNames,
    prefixes: one.names,
    // A platform's gateway for Mistral is named without the version.
    endpoint: { url, variables: [], includes: "/v1" as const },
    route: { protocol: "openai" as const },
    isGeneric: true,
  })),
];

/** OpenAI's Chat Completions, which most endpoints support. */
export const openai: Provider = providerNamed("openai");

/** OpenAI's models by a login for ChatGPT. No model gateway carries it: its API is another one. */
const chatgpt: Provider = {
  id: "openai-codex",
  names: ["openai-codex"],
  npm: "",
  api: "openai-codex-responses",
  version: "",
  providers: ["openai-codex", "openai"],
  prefixes: ["openai-codex", "openai"],
  credentials: ["OPENAI_API_KEY"],
  defaultModel: "gpt-5.5",
  endpoint: { url: "https://chatgpt.com/backend-api", variables: [] },
  isGeneric: false,
};

/**
 * The provider that a request selects: by its login, by `modelConnection.provider`, else by its model's prefix, else by the name of a
 * credential. Default: {@link openai}.
 */
export function providerOf(request: RunRequest): Provider {
  const { modelConnection: connection, model = "" } = request;
  if (connection?.subscription !== undefined) return chatgpt;
  const names = [connection?.provider ?? "", model.slice(0, Math.max(0, model.indexOf("/")))];
  const named = names.flatMap((name) => providers.find((one) => one.names.includes(name)) ?? [])[0];
  if (named !== undefined) return named;
  const given = connection?.credentials.map(({ binding }) => binding.name) ?? [];
  return providers.find(({ credentials }) => credentials.some((name) => given.includes(name))) ?? openai;
}

function providerNamed(name: string): Provider {
  const found = providers.find(({ id }) => id === name);
  if (found === undefined) throw new Error(`There is no provider '${name}'.`);
  return found;
}

/** A base URL for an agent that adds no version itself. */
export function withVersion(baseUrl: string, version: string): string {
  const base = baseUrl.replace(/\/+$/, "");
  return base.endsWith(version) ? base : `${base}${version}`;
}

/** A base URL for an agent that adds the version itself. */
export function withoutVersion(baseUrl: string, version: string): string {
  const base = baseUrl.replace(/\/+$/, "");
  return base.endsWith(version) ? base.slice(0, -version.length) : base;
}

/** The cloud region that the request names. Pure. */
export function regionOf({ modelConnection: connection }: RunRequest): string | undefined {
  const { AWS_REGION, CLOUD_ML_REGION } = connection?.environment ?? {};
  return connection?.endpoint?.region ?? AWS_REGION ?? CLOUD_ML_REGION;
}
