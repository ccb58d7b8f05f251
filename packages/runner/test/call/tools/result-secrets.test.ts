import type { PublishedTool } from "@ambit/core/plugin";
import { FakeExecutor } from "@ambit/fakes/executor";
import { done, type ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../../fakes/world.js";

const token = "s3cret/token+of-the-platform";
const request = {
  permissions: { default: "allow" },
  customTools: [
    { name: "weather", callRef: "ref", inputSchema: { type: "object" } },
    { name: "own", kind: "code", runtime: "node", code: "x", env: { KEY: "value-of-the-tool" } },
  ],
  toolCallback: { endpoint: "https://platform.example/tools/call", authorization: `Bearer ${token}` },
  mcpServers: [
    {
      name: "remote",
      connection: {
        type: "http",
        url: "https://mcp.example/mcp",
        credentials: [
          { binding: { kind: "header", name: "x-key" }, value: "key-of-the-server", usage: "opaque_http" },
        ],
      },
    },
  ],
};

/** What the agent gets when a tool answers with this text. */
async function resultsOf(output: string) {
  const outputs: string[] = [];
  const answering = async () => ({ status: "completed", output }) as const;
  const world = await createWorld({
    executors: ["callback", "code"].map((kind) => new FakeExecutor({ kind, execute: answering })),
    script: async function* ({ tools }: ScriptedTurn) {
      outputs.push((await tools("ambit").call("weather")).output);
      outputs.push((await tools("remote").call("search")).output);
      yield done;
    },
  });
  world.toolSource.answer = async () => ({ output, isError: true });
  await world.run(request);
  await world.runner.drain(0);
  return outputs;
}

/** What the agent sees of an MCP server with these tools, and the run's result. */
async function listed(tools: readonly PublishedTool[]) {
  const seen: PublishedTool[] = [];
  const world = await createWorld({
    executors: ["callback", "code"].map((kind) => new FakeExecutor({ kind })),
    script: async function* ({ tools: of }: ScriptedTurn) {
      seen.push(...of("remote").list());
      yield done;
    },
  });
  world.toolSource.tools = tools;
  const { result } = await world.run(request);
  await world.runner.drain(0);
  return { seen, warnings: result.warnings ?? [] };
}

describe("a list of tools that repeats a credential", () => {
  const inputSchema = { type: "object", properties: { q: { type: "string", default: "key-of-the-server" } } };

  it("reaches the agent without it, in descriptions and schemas", async () => {
    const description = `for key-of-the-server, ${"x".repeat(200_000)} and ${token}`;
    const { seen, warnings } = await listed([{ name: "search", description, inputSchema, readOnly: true }]);
    expect(seen).toEqual([
      {
        name: "search",
        description: `for [redacted], ${"x".repeat(200_000)} and [redacted]`,
        inputSchema: { type: "object", properties: { q: { type: "string", default: "[redacted]" } } },
        readOnly: true,
      },
    ]);
    expect(warnings).toEqual([]);
  });

  it("lacks a tool with one in its name, and the result has a warning", async () => {
    const tools = ["search", "of-key-of-the-server"].map((name) => ({ name, inputSchema: {} }));
    const { seen, warnings } = await listed(tools);
    expect(seen.map(({ name }) => name)).toEqual(["search"]);
    expect(warnings).toMatchObject([{ path: "mcpServers", message: expect.stringContaining("left out: 1") }]);
  });
});

describe("a tool's result that repeats a credential", () => {
  it.each([
    ["as it is", `invalid token: ${token}`, "invalid token: [redacted]"],
    ["in a URL", `?t=${encodeURIComponent(token)}`, "?t=[redacted]"],
    ["of an MCP server", "HTTP 401: key-of-the-server is unknown", "HTTP 401: [redacted] is unknown"],
  ])("%s reaches the agent without it", async (_how, output, hidden) => {
    expect(await resultsOf(output)).toEqual([hidden, hidden]);
  });

  it("where the limit of a result would cut it too", async () => {
    const output = `${"x".repeat(99_600)}${token.repeat(20)}`;
    for (const given of await resultsOf(output)) expect(given).not.toContain("s3cret");
  });

  it("keeps what a tool has inside anyway", async () => {
    const output = "value-of-the-tool";
    expect(await resultsOf(output)).toEqual([output, output]);
  });
});
