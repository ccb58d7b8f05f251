import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HarnessFailed, ModelFailed } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { planLaunch } from "../../src/harness/launch.js";
import {
  AcpHarness,
  defaultDriverLimits,
  inputInWords,
  type Profile,
  publishedTool,
} from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import { endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, failureOf, ofType, requestOf, turnOf } from "../support/runs.js";

const server = {
  name: "ambit",
  url: "http://127.0.0.1:1/mcp",
  headers: { Authorization: "Bearer token" },
  listed: () => true,
};

describe("session settings of a profile", () => {
  it("mode, model and options are set before the first prompt, in this order", async () => {
    const session = { mode: "plan", model: "large", options: { effort: "high", fast: false } };
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      launch: { session, sessionMeta: { run: 1 } },
    });
    const { agent, scope } = await fake.start();
    expect(fake.sessions).toMatchObject([{ _meta: { run: 1 } }]);
    const sessionId = "s1";
    expect(fake.choices).toEqual([
      { method: "session/set_mode", params: { sessionId, modeId: "plan" } },
      { method: "session/set_model", params: { sessionId, modelId: "large" } },
      {
        method: "session/set_config_option",
        params: { sessionId, configId: "effort", value: "high" },
      },
      {
        method: "session/set_config_option",
        params: { sessionId, configId: "fast", type: "boolean", value: false },
      },
    ]);
    expect(agent.model).toBe("large");
    await scope.close();
  });

  it("a choice that the agent refuses fails the start and is named", async () => {
    const launch = { session: { mode: "unknown" } };
    const starting = fakeAgent({ onPrompt: async () => endTurn, launch }).start();
    const message = expect.stringContaining('session/set_mode {"modeId":"unknown"}');
    await expect(starting).rejects.toMatchObject({ constructor: HarnessFailed, message });
  });

  it("`prepare` may pass the tools of an agent that accepts none over ACP", async () => {
    const fake = fakeAgent({
      initialize: { protocolVersion: 1, agentCapabilities: {} },
      onPrompt: async () => endTurn,
      profile: { toolDelivery: "prepared" },
      servers: { servers: [server] },
    });
    const { agent, scope } = await fake.start();
    expect(fake.sessions).toMatchObject([{ mcpServers: [] }]);
    expect(agent.capabilities.mcpTools).toBe(true);
    await scope.close();
  });

  it("`prepare` gets the tools' addresses, and its `_meta` overrides the profile's", () => {
    const { listed: _listed, ...endpoint } = server;
    const launch = planLaunch({
      profile: {
        ...demo,
        sessionMeta: { always: 1, run: 0 },
        prepare: ({ servers }) => ({ files: [], environment: {}, sessionMeta: { run: servers } }),
      },
      program: { argv: ["agent"], searchPath: "/bin" },
      env: {},
      request: requestOf(),
      sandbox: { home: "/h", workspace: "/w" },
      servers: [endpoint],
      startId: "first",
      deniesTools: false,
    });
    expect(launch.sessionMeta).toEqual({ always: 1, run: [endpoint] });
  });
});

describe("what a profile may read from a turn's response", () => {
  const answer = { stopReason: "end_turn", _meta: { spent: 7, went: "badly" } };

  it("the tokens it used", async () => {
    const fake = fakeAgent({
      onPrompt: async () => answer,
      profile: { usage: ({ _meta }) => ({ total: Object(_meta).spent }) },
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turnOf());
    expect(ofType(events, "usage")).toEqual([{ type: "usage", total: 7 }]);
    await scope.close();
  });

  it("no tokens, if they aren't the whole turn's (OpenCode)", async () => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      profile: { reports: { reasoning: true, plans: true, usage: false } },
    });
    const { agent, scope } = await fake.start();
    expect(ofType(await eventsOf(agent, turnOf()), "usage")).toEqual([]);
    await scope.close();
  });

  it("its failure", async () => {
    const fake = fakeAgent({
      onPrompt: async () => answer,
      profile: { failure: ({ _meta }) => `it went ${Object(_meta).went}` },
    });
    const { agent, scope } = await fake.start();
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    expect(String(error)).toContain("it went badly");
    await scope.close();
  });
});

describe("the files of a profile's program", () => {
  async function deployment() {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "ambit-profile-")));
    onTestFinished(() => rm(folder, { recursive: true }));
    for (const name of ["adapter", "agent"]) {
      const path = join(folder, "node_modules", name);
      await mkdir(path, { recursive: true });
      await writeFile(join(path, "package.json"), JSON.stringify({ name, bin: { [name]: "main.js" } }));
      await writeFile(join(path, "main.js"), "");
    }
    return folder;
  }
  const adapter = (companion: string): Profile => ({
    ...demo,
    program: {
      package: "adapter",
      bin: "adapter",
      inImage: "installed",
      companion: { package: companion, bin: companion },
      files: [{ path: "/etc/hostname", what: "a file" }],
    },
  });

  it("an adapter's agent and further files are shown inside, with the chosen Node.js", async () => {
    const folder = await deployment();
    const node = join(folder, "another-node");
    await symlink(process.execPath, node);
    const harness = new AcpHarness(adapter("agent"), { folder, node });
    expect(harness.issues(requestOf(), "host", false)).toEqual([]);
    const paths = harness.requiredPaths("host").map(({ path }) => path);
    const packages = ["adapter", "agent"].map((name) => join(folder, "node_modules", name));
    expect(paths).toEqual(
      expect.arrayContaining([...packages, "/etc/hostname", await realpath(process.execPath)]),
    );
  });

  it("a missing package is named with the command that installs it", async () => {
    const harness = new AcpHarness(adapter("extension"), { folder: await deployment() });
    const message = "the demo agent isn't installed: npm install adapter extension";
    expect(harness.issues(requestOf(), "host", false)).toMatchObject([{ path: "harness", message }]);
  });

  it("no other field is required, and helpers for reading calls are exported", () => {
    expect(new AcpHarness(demo).issues(requestOf(), "host", false)).toEqual([]);
    expect(defaultDriverLimits.openCalls).toBeGreaterThan(0);
    expect(publishedTool("ambit_x", ["{server}_{tool}"], ["ambit"])).toEqual({ name: "x", server: "ambit" });
    expect(inputInWords({ text: '{"a":1}' })).toEqual({ a: 1 });
  });
});
