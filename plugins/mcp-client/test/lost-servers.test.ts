import { once } from "node:events";
import type { McpServer, Publication, PublishedOutcome } from "@ambit/core/plugin";
import { RunCancelled, RunTimedOut } from "@ambit/core/plugin";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../src/config.js";
import { pauseAfter } from "../src/connections.js";
import { HttpToolSource } from "../src/http-source.js";
import { StdioToolSource } from "../src/stdio-source.js";
import { httpServer, TestScope } from "./support/runs.js";
import { Executions, SdkHttpServer, sdkServer, type Version, versions } from "./support/sdk-servers.js";

const config = configSchema.parse({ allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true });
const unknown = "Whether the call had an effect is unknown: find out before you repeat it.";

let scope = new TestScope();
afterEach(async () => {
  vi.restoreAllMocks();
  await scope.close();
  await Promise.all(scope.exits);
  scope = new TestScope();
});

async function served(version: Version, unknownSession?: "400" | "404") {
  const server = new SdkHttpServer(version, unknownSession);
  onTestFinished(() => server[Symbol.asyncDispose]());
  await server.start();
  const publication = await new HttpToolSource(config).connect(httpServer(server.url), scope);
  return { server, publication };
}

function call(
  publication: Publication,
  name: string,
  signal = new AbortController().signal,
): Promise<PublishedOutcome> {
  return publication.call({ name, arguments: {}, signal });
}

describe("a server over HTTP that forgets its sessions", () => {
  test.each(["404", "400"] as const)("and answers %s gets the call again, once", async (status) => {
    const { server, publication } = await served("2025-11-25", status);
    expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
    expect(await server.expire()).toBe(1);
    expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
    expect(server.executions.names).toEqual(["work", "work"]);
  });

  test("is initialized once for all calls, each of which is executed once", async () => {
    const { server, publication } = await served("2025-11-25");
    await server.expire();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => call(publication, "work")));
    expect(outcomes).toEqual(Array(8).fill({ output: "worked", isError: false }));
    expect(server.executions.names).toHaveLength(8);
    expect(await server.expire(), "sessions").toBe(1);
  });

  test("still answers a call that it took before", async () => {
    const { server, publication } = await served("2025-11-25");
    const waiting = call(publication, "wait");
    await vi.waitFor(() => expect(server.executions.names).toEqual(["wait"]));
    await server.expire();
    expect(await call(publication, "work")).toMatchObject({ isError: false });
    await fetch(new URL("/release", server.url));
    expect(await waiting).toEqual({ output: "waited", isError: false });
    expect(server.executions.names).toEqual(["wait", "work"]);
  });
});

describe.each(versions)("a server over HTTP, %s,", (version) => {
  test("that was killed between two calls is used again once it runs", async () => {
    const { server, publication } = await served(version);
    await call(publication, "work");
    await server.kill();
    expect(await call(publication, "work")).toEqual({
      output:
        "MCP server 'remote' could not be reached: it refuses the connection (ECONNREFUSED). The call was not made.",
      isError: true,
    });
    await server.start();
    expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
    expect(server.executions.names).toEqual(["work", "work"]);
  });

  test("that dies during calls has an unknown outcome for each, and none is repeated", async () => {
    const { server, publication } = await served(version);
    const calls = ["hang", "hang", "die"].map((name) => call(publication, name));
    for (const { output, isError } of await Promise.all(calls)) {
      expect(isError).toBe(true);
      expect(output).toMatch(/^MCP server 'remote' .+ Whether the call had an effect is unknown/);
    }
    await server.start();
    expect(await call(publication, "work")).toMatchObject({ isError: false });
    expect(server.executions.names.toSorted()).toEqual(["die", "hang", "hang", "work"]);
  });

  test("that doesn't answer in time is said to be late, not cancelled", async () => {
    const { server, publication } = await served(version);
    const late = new AbortController();
    const calling = call(publication, "hang", late.signal);
    await vi.waitFor(() => expect(server.executions.names).toEqual(["hang"]));
    late.abort(new RunTimedOut("Tool 'hang' took longer than 5 ms."));
    expect((await calling).output).toBe(
      `MCP server 'remote' gave no answer in time. Tool 'hang' took longer than 5 ms. ${unknown}`,
    );
    // The control.
    const abandoned = new AbortController();
    abandoned.abort(new RunCancelled("stopped"));
    expect((await call(publication, "hang", abandoned.signal)).output).toBe(
      "The call of 'hang' was cancelled.",
    );
  });

  test("that asks its user gets the protocol's refusal", async () => {
    const { publication } = await served(version);
    const { output } = await call(publication, "ask");
    expect(output).toBe(
      version === "2025-11-25"
        ? "-32601 Ambit doesn't offer 'elicitation/create' to MCP servers: a tool has to work with its arguments alone."
        : "MCP server 'remote' failed: Cannot request input 'name' (elicitation/create): the request's client capabilities do not declare the required capability.",
    );
  });
});

test("a server that changes its protocol between two calls is used in the other one", async () => {
  const { server, publication } = await served("2026-07-28");
  const older = new SdkHttpServer("2025-11-25");
  onTestFinished(() => older[Symbol.asyncDispose]());
  await server.kill();
  older.port = server.port;
  await older.start();
  expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
  await older.kill();
  await server.start();
  expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
});

describe("a stdio server", () => {
  async function spawned(env: Record<string, string> = {}) {
    const executions = new Executions();
    onTestFinished(() => executions[Symbol.dispose]());
    const connection: McpServer["connection"] = {
      type: "stdio",
      command: process.execPath,
      args: [sdkServer, "stdio"],
      env: { EXECUTED: executions.file, ...env },
    };
    const publication = await new StdioToolSource(config).connect({ name: "local", connection }, scope);
    return { executions, publication, connection };
  }

  test("that dies during a call says why, and is started again by the next one", async () => {
    const { executions, publication } = await spawned();
    expect(await call(publication, "die")).toEqual({
      output: `MCP server 'local' ended before it answered (exit code 7). ${unknown} It wrote:\nout of memory while working`,
      isError: true,
    });
    const outcomes = await Promise.all([call(publication, "work"), call(publication, "work")]);
    expect(outcomes).toEqual(Array(2).fill({ output: "worked", isError: false }));
    expect(executions.names).toEqual(["die", "work", "work"]);
    expect(scope.commands, "once for both").toHaveLength(2);
  });

  test("that writes its environment when it dies doesn't show it to the agent", async () => {
    const { publication } = await spawned({ LAST_WORDS: "token hunter2-hunter2 expired" });
    expect((await call(publication, "die")).output).toMatch(/ It wrote:\n\*+\nout of memory while working$/);
  });

  test("that was killed between two calls is started again", async () => {
    const { publication } = await spawned();
    await call(publication, "work");
    const [first] = scope.children;
    first?.kill("SIGKILL");
    if (first !== undefined) await once(first, "close");
    expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
  });

  test("that dies at each start says so, and is started after pauses", async () => {
    let nowMs = 1_000_000;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const { publication, connection } = await spawned();
    if (connection.type === "stdio" && connection.env !== undefined) connection.env.BREAKS = "at start";
    await call(publication, "die");
    const wrote =
      "it ended before it answered (exit code 3). The call was not made. It wrote:\nno configuration at /etc/tool.conf";
    const lost = "MCP server 'local' was lost, and couldn't be reached again";
    expect((await call(publication, "work")).output).toBe(`${lost}: ${wrote}`);
    expect((await call(publication, "work")).output).toBe(`${lost}; the next attempt comes in 1 s: ${wrote}`);
    expect(scope.commands).toHaveLength(2);
    nowMs += 1_000;
    expect((await call(publication, "work")).output).toBe(`${lost} in 2 attempts: ${wrote}`);
    expect(scope.commands).toHaveLength(3);
    nowMs += 2_000;
    if (connection.type === "stdio" && connection.env !== undefined) delete connection.env.BREAKS;
    expect(await call(publication, "work")).toEqual({ output: "worked", isError: false });
  });

  test("that ends with each first call is started after pauses", async () => {
    vi.spyOn(performance, "now").mockReturnValue(1_000_000);
    const { publication, connection } = await spawned();
    if (connection.type === "stdio" && connection.env !== undefined)
      connection.env.BREAKS = "after its start";
    await call(publication, "die");
    const wrote = "It wrote:\nlicence expired";
    expect((await call(publication, "work")).output).toBe(
      `MCP server 'local' ended before it answered (exit code 4). ${unknown} ${wrote}`,
    );
    expect((await call(publication, "work")).output).toBe(
      `MCP server 'local' was lost, and couldn't be reached again; the next attempt comes in 1 s: it ended before it answered (exit code 4). The call was not made. ${wrote}`,
    );
    expect(scope.commands).toHaveLength(2);
  });
});

test.each([
  [1, 1_000],
  [2, 2_000],
  [6, 32_000],
  [7, 60_000],
  [2_000, 60_000],
])("after %i failures the next attempt is made %i ms later", (failures, pauseMs) => {
  expect(pauseAfter(failures)).toBe(pauseMs);
});
