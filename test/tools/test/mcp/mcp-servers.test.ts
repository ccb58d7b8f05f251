// needs: jail
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BoundaryRefused, RequestInvalid } from "@ambit/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking, ownToolsAllowed, startAgent } from "../support/agents.js";
import { type RunningMcpServer, startMcpServer } from "../support/mcp-server.js";
import { startPlatform } from "../support/platform.js";
import { Stage } from "../support/stage.js";
import { callbackTool } from "../support/tools.js";

let stage: Stage;
let unconfined: Stage;
let remote: RunningMcpServer;
beforeAll(async () => {
  [stage, unconfined, remote] = await Promise.all([
    Stage.open(),
    Stage.open({ unconfined: "prefer" }),
    startMcpServer(),
  ]);
});
afterAll(async () => {
  await Promise.all([stage.close(), unconfined.close()]);
  await remote[Symbol.asyncDispose]();
});

const fileOf = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));
const spy = readFileSync(fileOf("spy.py"), "utf8");
const stdioServer = readFileSync(fileOf("stdio-server.mjs"), "utf8");
const credential = "mcp-credential-77f1c2";
const serverSecret = "stdio-secret-93ab04";
const reversed = (text: string) => [...text].reverse().join("");

/** Both servers; all calls allowed unless `policy` says otherwise. */
function withServers(policy: object = { permission: "allow" }) {
  const credentials = [{ binding: { kind: "header", name: "authorization" }, value: `Bearer ${credential}` }];
  return {
    mcpServers: [
      { name: "remote", connection: { type: "http", url: remote.url, credentials }, policy },
      {
        name: "local",
        connection: {
          type: "stdio",
          command: "node",
          args: ["server.mjs"],
          env: { SERVER_SECRET: serverSecret },
        },
        policy,
      },
    ],
    harnessFiles: [
      { path: "server.mjs", content: stdioServer },
      { path: "spy.py", content: spy },
    ],
  };
}

describe.each(["demo", "gemini", "codex"] as const)("%s", (id) => {
  it("calls both servers' tools next to a published one of the same name, and only those that the policy includes", {
    timeout: 60_000,
  }, async () => {
    const agent = await startAgent(id);
    await using platform = await startPlatform(() => "ours");
    const qualified = (server: string, tool: string) =>
      ({ demo: `${server}/${tool}`, gemini: `mcp_${server}_${tool}`, codex: `mcp__${server}__${tool}` })[id];
    const included = { permission: "allow", tools: { mode: "include", names: ["echo"] } };
    const prompt = agent.prompt(
      ...["ambit", "remote", "local"].map((server) => ({
        tool: qualified(server, "echo"),
        input: { to: server },
      })),
    );
    const run = await stage.run({
      ...agent.request,
      ...withServers(included),
      ...asking(`${prompt}${id === "demo" ? "\ntools\ncall remote/wreck\ncall local/wreck" : ""}`),
      customTools: [callbackTool("echo")],
      toolCallback: { endpoint: platform.endpoint },
    });
    const result = await run.result;
    expect(result).toMatchObject({ ok: true, receipt: { confinement: "confined" } });
    const outputs = run.resultsOf("echo").map(({ output }) => output);
    expect(outputs).toEqual(['"ours"', 'remote echo {"to":"remote"}', 'local echo {"to":"local"}']);
    expect(platform.calls).toMatchObject([{ arguments: { to: "ambit" } }]);
    const offered =
      agent.model?.requests.flatMap(({ toolNames }) => toolNames).join() ?? String(result.output);
    expect(offered).toContain("echo");
    expect(offered).not.toContain("wreck");
    if (id === "demo") {
      expect(run.resultsOf("wreck").map(({ isError }) => isError)).toEqual([true, true]);
    }
    expect(remote.calls).not.toContain("wreck");
    // Every request had the credential, and only the runner sent any.
    expect(remote.headers.map((headers) => headers.get("authorization"))).not.toContain(null);
    await agent.close();
  });
});

describe("what the agent can find of the servers", () => {
  async function spied(on: Stage, more: object): Promise<string[]> {
    const roots = on === unconfined ? { roots: ["."] } : {};
    const input = JSON.stringify({
      needles: [credential, serverSecret].map(reversed),
      runner: process.pid,
      ...roots,
    });
    const prompt = `write victim-is-ready now\ncall remote/echo {}\nrun python3 spy.py '${input}'`;
    const permissions = { rules: ownToolsAllowed };
    const run = await on.run({ harness: "demo", ...asking(prompt), permissions, ...withServers(), ...more });
    expect((await run.result).ok).toBe(true);
    const [output = ""] = String(run.resultsOf("run")[0]?.output).split("\n");
    return Object.keys(JSON.parse(output).found).map(reversed);
  }

  it("excludes the HTTP server's credential and the stdio server's environment", async () => {
    expect(await spied(stage, {})).toEqual([]);
    const run = await stage.run({ harness: "demo", ...asking("call environment"), ...withServers() });
    expect((await run.result).ok).toBe(true);
    // It is redacted in the events too.
    expect(String(run.resultsOf("environment")[0]?.output)).toContain('"SERVER_SECRET":"[redacted]"');
  });

  it("includes the credential if nothing is confined (the control)", { timeout: 60_000 }, async () => {
    const { mcpServers } = withServers();
    expect(await spied(unconfined, { mcpServers: mcpServers.slice(0, 1) })).toContain(credential);
  });

  it("includes the environment of an unconfined process (the control)", { timeout: 60_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-spy-"));
    const secret = `${serverSecret}-bare`;
    const env = { PATH: process.env.PATH, SERVER_SECRET: secret };
    const server = spawn(process.execPath, [fileOf("stdio-server.mjs")], { env, stdio: "pipe" });
    try {
      await writeFile(join(folder, "victim-is-ready"), "");
      const input = JSON.stringify({ needles: [reversed(secret)], runner: server.pid, roots: ["."] });
      const { stdout } = spawnSync("python3", [fileOf("spy.py"), input], { cwd: folder, encoding: "utf8" });
      expect(JSON.parse(stdout).found).toEqual({ [reversed(secret)]: expect.any(String) });
    } finally {
      server.kill();
      await rm(folder, { recursive: true });
    }
  });
});

describe("permissions", () => {
  it.each([
    ["a server that denies", { permission: "deny" }, { default: "allow" }, "denied"],
    ["a server that asks", { permission: "ask" }, { default: "allow" }, "asked"],
    [
      "a rule",
      { tools: { mode: "include", names: ["look"] } },
      { default: "allow", rules: [{ pattern: "look", permission: "deny" }] },
      "denied",
    ],
    // Its tool declares to be read-only, which isn't trusted.
    ["allow_reads, of a tool that says it only reads", {}, { default: "allow_reads" }, "asked"],
    ["a default that allows", {}, { default: "allow" }, "executed"],
  ])("%s", async (_what, policy, permissions, expected) => {
    const before = remote.calls.length;
    const { mcpServers } = withServers(policy);
    const run = await stage.run({
      harness: "demo",
      ...asking("call look {}"),
      permissions,
      mcpServers: mcpServers.slice(0, 1),
    });
    const { ok, stopReason } = await run.result;
    expect(ok).toBe(true);
    const denied = run.of("tool_result").some((result) => result.denied === true);
    expect(stopReason === "paused" ? "asked" : denied ? "denied" : "executed").toBe(expected);
    expect(remote.calls.length - before).toBe(expected === "executed" ? 1 : 0);
  });
});

describe("requests that are refused before anything runs", () => {
  it.each([
    ["a server with our own name", { name: "ambit" }],
    ["two of one name", { name: "local" }],
  ])("%s", async (_what, changes) => {
    const { mcpServers } = withServers();
    const request = {
      harness: "demo",
      ...asking("tools"),
      mcpServers: [{ ...mcpServers[0], ...changes }, mcpServers[1]],
    };
    await expect(stage.begin(request)).rejects.toThrow(RequestInvalid);
  });

  it("an HTTP server off the boundary's allowlist; a stdio server is inside it", async () => {
    const { mcpServers, harnessFiles } = withServers();
    const sandboxPermission = { network: { mode: "off" } };
    const request = { harness: "demo", ...asking("call local/echo {}"), harnessFiles, sandboxPermission };
    await expect(stage.begin({ ...request, mcpServers })).rejects.toThrow(BoundaryRefused);
    const run = await stage.run({ ...request, mcpServers: mcpServers.slice(1) });
    expect((await run.result).ok).toBe(true);
    expect(run.resultsOf("echo")).toMatchObject([{ output: "local echo {}" }]);
  });
});
