import { describe, expect, it } from "vitest";
import { modelName, modelUse } from "../../src/harness/model.js";
import { requestIssues } from "../../src/harness/request-issues.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import { credential } from "../support/harnesses.js";
import { requestOf } from "../support/runs.js";

/** Every provider that the Agenta SDK 0.125.1 names for Pi, with the variable and the address that it sends. */
const sent = [
  ["openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "openai/gpt-6-sol", "gpt-6-sol"],
  ["anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "anthropic/claude-opus-5", "claude-opus-5"],
  [
    "gemini",
    "GEMINI_API_KEY",
    "https://generativelanguage.googleapis.com/v1beta",
    "gemini/gemini-3.7-flash",
    "gemini-3.7-flash",
  ],
  [
    "mistral",
    "MISTRAL_API_KEY",
    "https://api.mistral.ai/v1",
    "mistral/mistral-small-latest",
    "mistral-small-latest",
  ],
  ["mistralai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistralai/devstral", "devstral"],
  ["minimax", "MINIMAX_API_KEY", "https://api.minimax.io/v1", "minimax/MiniMax-M3", "MiniMax-M3"],
  ["groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1", "groq/openai/gpt-oss-20b", "openai/gpt-oss-20b"],
  [
    "together_ai",
    "TOGETHER_API_KEY",
    "https://api.together.xyz/v1",
    "together_ai/zai-org/GLM-5.2",
    "zai-org/GLM-5.2",
  ],
  [
    "openrouter",
    "OPENROUTER_API_KEY",
    "https://openrouter.ai/api/v1",
    "openrouter/openai/gpt-6-sol",
    "openai/gpt-6-sol",
  ],
  ["xai", "XAI_API_KEY", "https://api.x.ai/v1", "xai/grok-4.7", "grok-4.7"],
] as const;

/** Where the first request goes: the part of the path that the agent adds begins with the version or comes after it. */
const calls: Readonly<Record<string, string>> = {
  openai: "/v1/chat/completions",
  anthropic: "/v1/messages",
  gemini: "/v1beta/models/m:generateContent",
};

describe.each([pi, opencode])("$title's providers", (profile) => {
  it.each(sent)("%s, with %s at %s: %s is %s", (provider, variable, baseUrl, model, name) => {
    const request = requestOf({
      model,
      modelConnection: { provider, endpoint: { baseUrl }, credentials: [credential(variable)] },
    });
    expect(requestIssues(profile, request, {}, true, 0)).toEqual([]);
    const use = modelUse(profile, request, {});
    expect(use).toMatchObject({ model: name, credentials: { [variable]: expect.any(String) } });
    // What the model route asks the provider for: its base path is the address's own.
    const call = calls[use?.protocol ?? ""] ?? "";
    const asked = `${use?.endpoint}${call.slice(use?.basePath.length)}`;
    const root = baseUrl.replace(/\/v1(beta)?$/, "");
    expect(asked).toBe(`${root}${call}`);
  });

  it("is named by its model's prefix or by its credential too", () => {
    const byModel = requestOf({ model: "xai/grok-4.7" });
    expect(modelUse(profile, byModel, {})).toMatchObject({
      endpoint: "https://api.x.ai/v1",
      model: "grok-4.7",
    });
    const byKey = requestOf({ modelConnection: { credentials: [credential("GROQ_API_KEY")] } });
    expect(modelUse(profile, byKey, {})?.endpoint).toBe("https://api.groq.com/openai/v1");
  });

  it("keeps a model's name that begins like another provider's", () => {
    const connection = { provider: "openai", endpoint: { baseUrl: "https://any.example/v1" } };
    const request = requestOf({ model: "anthropic/claude-opus-5", modelConnection: connection });
    expect(modelName(profile, request)).toBe("anthropic/claude-opus-5");
  });

  it("adds the version to a gateway's route for Mistral, which has none", () => {
    const baseUrl = "https://platform.example/api/gateways/llms/standard/mistral";
    const request = requestOf({ modelConnection: { provider: "mistral", endpoint: { baseUrl } } });
    expect(modelUse(profile, request, {})?.endpoint).toBe(`${baseUrl}/v1`);
  });

  it("refuses any other by its name, with the fix", () => {
    const request = requestOf({
      modelConnection: { provider: "deepseek", credentials: [credential("OPENAI_API_KEY")] },
    });
    expect(requestIssues(profile, request, {}, true, 0)).toEqual([
      {
        path: "modelConnection.provider",
        message: expect.stringMatching(
          /talks to openai, .*xai, not to deepseek: where it has Chat Completions, name the provider "openai"/,
        ),
      },
    ]);
  });
});
