import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoAgentEntry } from "@ambit/agent-demo";
import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import plugin, { AcpHarness } from "../../src/index.js";
import { customProfile } from "../../src/profiles/custom.js";
import { ProcessSandbox } from "../support/process-sandbox.js";
import { eventsOf, ofType, requestOf, TestScope, textOf, turnOf } from "../support/runs.js";
import { startToolServer } from "../support/tool-server.js";

function customHarness(id: string, agent: object): AcpHarness {
  const configured = plugin.config.parse({ agents: { [id]: agent } }).agents[id];
  if (configured === undefined) throw new Error("the configuration has no such agent");
  return new AcpHarness(customProfile(id, configured), { command: configured.command });
}

const demo = { command: demoAgentEntry, args: ["--ask"] };
/** Gemini CLI, described from its manual alone. */
const geminiFolder = dirname(fileURLToPath(import.meta.resolve("@google/gemini-cli/package.json")));
const gemini = {
  title: "My Gemini",
  command: join(geminiFolder, "bundle/gemini.js"),
  args: ["--acp", "--model", "{{model}}"],
  env: { GEMINI_CLI_NO_RELAUNCH: "true", GOOGLE_GEMINI_BASE_URL: "{{baseUrl}}" },
  files: [
    {
      path: ".gemini/settings.json",
      content: '{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":1}}',
    },
  ],
  model: {
    protocol: "gemini",
    url: "https://generativelanguage.googleapis.com",
    default: "gemini-2.5-flash",
    credential: "GEMINI_API_KEY",
  },
};

describe("an agent by configuration alone", () => {
  it.each([
    { agents: { claude: demo } },
    { agents: { Mine: demo } },
    { agents: { mine: { command: "relative" } } },
    { agents: { mine: { ...demo, files: [{ path: "../out", content: "" }] } } },
    { agents: { mine: { ...demo, files: [{ path: "/etc/x", content: "" }] } } },
    { agents: { mine: { ...demo, toolTitles: ["{server}"] } } },
  ])("is refused as $agents", ({ agents }) => {
    expect(plugin.config.safeParse({ agents }).success).toBe(false);
  });

  it("is refused without asksBeforeOwnTools, and trusted with it", () => {
    const missing = customHarness("mine", { command: "/nowhere/agent" });
    expect(missing.issues(requestOf(), "host", false)).toMatchObject([{ path: "harness" }]);
    expect(missing.supportsPermissionRequests).toBe(false);
    expect(customHarness("mine", { ...demo, asksBeforeOwnTools: true }).supportsPermissionRequests).toBe(
      true,
    );
  });

  it("emits text, asks, and calls published tools by their names", async () => {
    const sandbox = await ProcessSandbox.open();
    await using tools = await startToolServer();
    const scope = new TestScope(sandbox, { servers: [tools.published] });
    const agent = await customHarness("mine", { ...demo, asksBeforeOwnTools: true }).start(scope);
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say hello" })))).toBe("hello");
    const turn = turnOf({ prompt: "run touch made", answer: "deny" });
    await eventsOf(agent, turn);
    expect(turn.questions).toMatchObject([{ toolName: "shell", toolClass: "shell" }]);
    expect(await readdir(sandbox.workspace)).toEqual([]);
    const called = await eventsOf(agent, turnOf({ prompt: 'call lookup {"key":"k"}' }));
    expect(ofType(called, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    await scope.close();
    await sandbox.close();
  });

  it("reaches its model by its files, arguments and variables", { timeout: 30_000 }, async () => {
    const sandbox = await ProcessSandbox.open();
    await using model = await startModelServer({ expectedKey: "k" });
    const request = {
      modelConnection: {
        endpoint: { baseUrl: model.url },
        credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "k" }],
      },
    };
    const scope = new TestScope(sandbox, { request });
    const agent = await customHarness("mine", gemini).start(scope);
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("Hello from the scripted model.");
    expect(model.requests.at(-1)).toMatchObject({ model: "gemini-2.5-flash", credentials: ["k"] });
    await scope.close();
    await sandbox.close();
  });
});
