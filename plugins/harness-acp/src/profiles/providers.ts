import type { RunRequest } from "@ambit/core/plugin";
import type { ModelAccess } from "./profile.js";

/** A model's provider, in the configuration of agents with several. */
export interface Provider extends ModelAccess {
  /** Its name in their configuration. */
  readonly id: string;
  /** The package that implements its API in OpenCode, which includes it. */
  readonly npm: string;
  /** Pi's name for its API. */
  readonly api: string;
  /** The part of its paths that an endpoint's base URL doesn't include, but these agents' setting does. */
  readonly version: "" | "/v1" | "/v1beta";
}

const anthropic: Provider = {
  id: "anthropic",
  npm: "@ai-sdk/anthropic",
  api: "anthropic-messages",
  version: "/v1",
  providers: ["anthropic", "openai", "openai-codex", "google", "gemini", "google-ai"],
  credentials: ["ANTHROPIC_API_KEY"],
  defaultModel: "claude-sonnet-5",
  endpoint: { url: "https://api.anthropic.com", variables: ["ANTHROPIC_BASE_URL"] },
  route: { protocol: "anthropic" },
};

export const openai: Provider = {
  id: "openai",
  npm: "@ai-sdk/openai-compatible",
  api: "openai-completions",
  version: "",
  providers: anthropic.providers,
  credentials: ["OPENAI_API_KEY"],
  defaultModel: "gpt-5.5",
  endpoint: { url: "https://api.openai.com/v1", variables: ["OPENAI_BASE_URL"] },
  route: { protocol: "openai" },
};

const google: Provider = {
  id: "google",
  npm: "@ai-sdk/google",
  api: "google-generative-ai",
  version: "/v1beta",
  providers: anthropic.providers,
  credentials: ["GEMINI_API_KEY"],
  defaultModel: "gemini-2.5-flash",
  endpoint: { url: "https://generativelanguage.googleapis.com", variables: ["GOOGLE_GEMINI_BASE_URL"] },
  route: { protocol: "gemini" },
};

const known = { anthropic, openai, google, gemini: google, "google-ai": google, "openai-codex": openai };

const isKnown = (name: string): name is keyof typeof known => Object.hasOwn(known, name);

/**
 * The provider that a request selects: by `modelConnection.provider`, else by its model's prefix, else by the name of a
 * credential. Default: OpenAI's Chat Completions, which most endpoints support.
 */
export function providerOf(request: RunRequest): Provider {
  const { modelConnection: connection, model = "" } = request;
  const names = [connection?.provider ?? "", model.slice(0, Math.max(0, model.indexOf("/")))];
  const named = names.find(isKnown);
  if (named !== undefined) return known[named];
  const given = connection?.credentials.map(({ binding }) => binding.name) ?? [];
  const byCredential = [anthropic, google].find(({ credentials }) =>
    credentials.some((name) => given.includes(name)),
  );
  return byCredential ?? openai;
}

/** A base URL for an agent that adds no version itself. */
export function withVersion(baseUrl: string, version: string): string {
  const base = baseUrl.replace(/\/+$/, "");
  return base.endsWith(version) ? base : `${base}${version}`;
}
