import { describe, expect, it } from "vitest";
import { planLaunch } from "../../src/harness/launch.js";
import { modelUse } from "../../src/harness/model.js";
import { claude } from "../../src/profiles/claude.js";
import { codex } from "../../src/profiles/codex.js";
import { demo } from "../../src/profiles/demo.js";
import { gemini } from "../../src/profiles/gemini.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import type { Profile } from "../../src/profiles/profile.js";
import { qwen } from "../../src/profiles/qwen.js";
import { demoHere } from "../support/harnesses.js";
import { requestOf } from "../support/runs.js";

const profiles = [claude, codex, demo, gemini, opencode, pi, qwen];

function launched(profile: Profile, request: object) {
  return planLaunch({
    profile,
    program: { argv: ["agent"], searchPath: "/usr/bin" },
    env: {},
    request: requestOf(request),
    sandbox: { home: "/home/agent/1", workspace: "/workspace" },
    servers: [],
    deniesTools: false,
    startId: "start-1",
  });
}

describe.each(profiles)("$title", (profile) => {
  it("gets the platform's instructions before the author's", () => {
    const author = profile.instructions.appendSystemPrompt ? "appendSystemPrompt" : "agentsMd";
    const launch = JSON.stringify(
      launched(profile, { platformInstructions: "Of the platform.", [author]: "Of the author." }),
    );
    expect(launch.indexOf("Of the platform.")).toBeGreaterThan(-1);
    expect(launch.indexOf("Of the author.")).toBeGreaterThan(launch.indexOf("Of the platform."));
    expect(JSON.stringify(launched(profile, { platformInstructions: "Of the platform." }))).toContain(
      "Of the platform.",
    );
  });

  it("gets a credential as a variable", () => {
    const sandboxCredentials = [{ binding: { kind: "environment", name: "GITHUB_TOKEN" }, value: "token-1" }];
    expect(launched(profile, { sandboxCredentials }).env.GITHUB_TOKEN).toBe("token-1");
  });
});

describe.each(profiles.filter(({ model }) => model?.route !== undefined))(
  "$title with a gateway",
  (profile) => {
    it("needs the gateway's header for its model, which stays outside", () => {
      const modelConnection = {
        credentialMode: "none",
        endpoint: { baseUrl: "https://gateway.example/v1" },
        gatewayCredentials: { header: "X-Key", value: "secret-1" },
      };
      expect(modelUse(profile, requestOf({ modelConnection }), {})?.headers).toEqual({ "X-Key": "secret-1" });
      expect(JSON.stringify(launched(profile, { modelConnection }))).not.toContain("secret-1");
    });
  },
);

describe("a variable that would not arrive is refused", () => {
  it.each(["PATH", "NODE_OPTIONS", "LD_PRELOAD", "https_proxy", "CODEX_HOME"])("%s", (name) => {
    const sandboxCredentials = [{ binding: { kind: "environment", name }, value: "token-1" }];
    expect(demoHere.issues(requestOf({ sandboxCredentials }), "host", false)).toMatchObject([
      { path: "sandboxCredentials[0].binding.name" },
    ]);
  });
});
