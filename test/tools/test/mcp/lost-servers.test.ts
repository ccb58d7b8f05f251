// needs: jail
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking } from "../support/agents.js";
import { startMcpServer } from "../support/mcp-server.js";
import { Stage } from "../support/stage.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

const program = readFileSync(fileURLToPath(new URL("../support/stdio-server.mjs", import.meta.url)), "utf8");
const secret = "stdio-secret-93ab04";
const unknown = "Whether the call had an effect is unknown: find out before you repeat it.";

function withStdioServer(sessionId: string, ...lines: readonly string[]) {
  const connection = { type: "stdio", command: "node", args: ["server.mjs"], env: { SERVER_SECRET: secret } };
  return {
    harness: "demo",
    sessionId,
    ...asking(lines.join("\n")),
    mcpServers: [{ name: "local", connection, policy: { permission: "allow" } }],
    harnessFiles: [{ path: "server.mjs", content: program }],
  };
}

it("a server over HTTP that expires its session is used again in the session's next run", {
  timeout: 60_000,
}, async () => {
  await using remote = await startMcpServer("with sessions");
  const connection = { type: "http", url: remote.url };
  const request = {
    harness: "demo",
    sessionId: "expired",
    ...asking("call remote/echo {}"),
    mcpServers: [{ name: "remote", connection, policy: { permission: "allow" } }],
  };
  for (const history of ["new", "warm", "warm"]) {
    const run = await stage.run(request);
    expect(await run.result).toMatchObject({ ok: true, receipt: { session: { history } } });
    expect(run.resultsOf("echo")).toMatchObject([{ output: "remote echo {}" }]);
    remote.expire();
  }
  expect(remote.calls).toEqual(["echo", "echo", "echo"]);
});

it("a stdio server that dies is started again in the run, and in the session's next one", {
  timeout: 60_000,
}, async () => {
  const first = await stage.run(
    withStdioServer("died", "call local/die {}", "call local/echo {}", "call local/die {}"),
  );
  expect((await first.result).ok).toBe(true);
  const death = `MCP server 'local' ended before it answered (exit code 9). ${unknown} It wrote:\nno space left for ${"*".repeat(secret.length)}`;
  expect(first.resultsOf("die").map(({ output }) => output)).toEqual([death, death]);
  expect(first.resultsOf("echo")).toMatchObject([{ output: "local echo {}" }]);
  const second = await stage.run(withStdioServer("died", "call local/echo {}"));
  expect(await second.result).toMatchObject({ ok: true, receipt: { session: { history: "warm" } } });
  expect(second.resultsOf("echo")).toMatchObject([{ output: "local echo {}" }]);
});

it("a call beyond its time limit is said to be late, not cancelled", { timeout: 60_000 }, async () => {
  const impatient = await Stage.open({ limits: { toolMs: 1_000 } });
  try {
    const run = await impatient.run(withStdioServer("late", "call local/hang {}"));
    expect(run.resultsOf("hang").map(({ output }) => output)).toEqual([
      `MCP server 'local' gave no answer in time. Tool 'hang' took longer than 1000 ms. ${unknown}`,
    ]);
  } finally {
    await impatient.close();
  }
});
