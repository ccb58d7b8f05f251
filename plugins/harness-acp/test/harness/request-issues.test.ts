import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { gemini } from "../../src/profiles/gemini.js";
import { credential, demoHere, geminiHere, here, withKey } from "../support/harnesses.js";
import { ProcessSandbox } from "../support/process-sandbox.js";
import { requestOf, TestScope } from "../support/runs.js";

describe("issues of a request", () => {
  it.each([
    { what: "nothing amiss", harness: demoHere, request: {}, paths: [] },
    { what: "no credential", harness: geminiHere, request: {}, paths: ["modelConnection.credentials"] },
    {
      what: "a credential of another name",
      harness: geminiHere,
      request: { modelConnection: { credentials: [credential("OPENAI_API_KEY")] } },
      paths: ["modelConnection.credentials"],
    },
    {
      what: "an endpoint that needs none",
      harness: geminiHere,
      request: { modelConnection: { credentialMode: "none" } },
      paths: [],
    },
    {
      what: "another provider, and unsupported settings",
      harness: geminiHere,
      request: {
        modelConnection: {
          provider: "anthropic",
          endpoint: { region: "eu", headers: { a: "b" } },
          credentials: [credential("GEMINI_API_KEY")],
        },
      },
      paths: [
        "modelConnection.provider",
        "modelConnection.endpoint.region",
        "modelConnection.endpoint.headers",
      ],
    },
    {
      what: "unsupported prompts",
      harness: demoHere,
      request: { systemPrompt: "s", appendSystemPrompt: "a", harnessMode: "plan" },
      paths: ["systemPrompt", "appendSystemPrompt", "harnessMode"],
    },
    {
      what: "an effort without a setting",
      harness: demoHere,
      request: { reasoningEffort: "low" },
      paths: ["reasoningEffort"],
    },
    {
      what: "an effort that the agent has",
      harness: geminiHere,
      request: { reasoningEffort: "low", modelConnection: { credentialMode: "none" } },
      paths: [],
    },
    {
      what: "an effort that it doesn't have",
      harness: geminiHere,
      request: { reasoningEffort: "xhigh", modelConnection: { credentialMode: "none" } },
      paths: ["reasoningEffort"],
    },
    { what: "empty prompts", harness: demoHere, request: { systemPrompt: "", harnessMode: "" }, paths: [] },
    {
      what: "two sources for the same file",
      harness: demoHere,
      request: { agentsMd: "a", harnessFiles: [{ path: "./AGENTS.md", content: "b" }] },
      paths: ["harnessFiles[0].path"],
    },
    {
      what: "variables that a request can't set",
      harness: demoHere,
      request: {
        modelConnection: { environment: { PATH: "/evil", "A B": "" }, credentials: [credential("HOME")] },
      },
      paths: [
        "modelConnection.environment.PATH",
        "modelConnection.environment.A B",
        "modelConnection.credentials[0].binding.name",
      ],
    },
  ])("$what", ({ harness, request, paths }) => {
    expect(harness.issues(requestOf(request), "host", false).map(({ path }) => path)).toEqual(paths);
  });

  it("names the command that installs a missing agent, at plan time and at the start", async () => {
    const program = { package: "@ambit/no-such-agent", bin: "x", inImage: "installed" } as const;
    const missing = new AcpHarness({ ...gemini, program }, here);
    const fix = "ambit agents install gemini";
    const refused = [{ path: "harness", message: expect.stringContaining(fix) }];
    expect(missing.issues(withKey, "host", false)).toEqual(refused);
    expect(missing.requiredPaths("host")).toEqual([]);
    // An image may contain it; an agent that is copied into one must be here.
    expect(missing.issues(withKey, "image", false)).toEqual([]);
    const copied = new AcpHarness({ ...gemini, program: { ...program, inImage: "copied" } }, here);
    expect(copied.issues(withKey, "image", false)).toEqual(refused);
    const sandbox = await ProcessSandbox.open();
    const starting = missing.start(new TestScope(sandbox, { request: withKey }));
    await expect(starting).rejects.toBeInstanceOf(HarnessFailed);
    await expect(starting).rejects.toThrow(fix);
    expect(sandbox.spawned).toEqual([]);
    await sandbox.close();
  });

  it("names a configured path that doesn't exist", () => {
    const lost = new AcpHarness(gemini, { ...here, command: "/no/such/gemini.js" });
    expect(lost.issues(withKey, "host", false)).toEqual([
      { path: "harness", message: expect.stringContaining("/no/such/gemini.js") },
    ]);
  });
});
