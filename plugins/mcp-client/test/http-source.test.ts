import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import type { Boundary, PublishedCall } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { type Asked, startMcpServer } from "./support/mcp-server.js";
import { closed, httpServer, open, TestScope } from "./support/runs.js";

const loopback = { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true };
const call = (name: string): PublishedCall => ({
  name,
  arguments: { text: "hi" },
  signal: new AbortController().signal,
});

let scope = new TestScope();
afterEach(async () => {
  await scope.close();
  scope = new TestScope();
});

/** Every name resolves to these addresses: one set per lookup, then the last one. */
function leadingTo(...answers: string[][]): Lookup {
  let next = 0;
  return async () => {
    const addresses = answers[Math.min(next, answers.length - 1)] ?? [];
    next += 1;
    return addresses;
  };
}

describe("a remote server", () => {
  test("its tools are published and called, with its credentials on every request", async () => {
    await using remote = await startMcpServer();
    const source = new HttpToolSource(configSchema.parse(loopback));
    const credentials = [
      { binding: { kind: "header", name: "x-key" }, value: "s3cret-key", usage: "opaque_http" },
    ] as const;
    const url = `http://127.0.0.1:${remote.port}/mcp`;
    const server = httpServer(url, { connection: { type: "http", url, credentials: [...credentials] } });
    const publication = await source.connect(server, scope);
    expect(publication.tools.map(({ name }) => name)).toEqual(["echo", "look", "wreck", "burn"]);
    expect(publication.tools[0]?.inputSchema).toEqual({
      type: "object",
      properties: { text: { type: "string" } },
    });
    expect(publication.tools[1]?.readOnly).toBe(true);
    expect(await publication.call(call("echo"))).toEqual({ output: 'echo: {"text":"hi"}', isError: false });
    expect(await publication.call(call("wreck"))).toMatchObject({ isError: true });
    expect(remote.headers.every((headers) => headers.get("x-key") === "s3cret-key")).toBe(true);
    expect(JSON.stringify(publication)).not.toContain("s3cret-key");
  });

  test("its schema of its own results blocks nothing", async () => {
    await using remote = await startMcpServer();
    const source = new HttpToolSource(configSchema.parse(loopback));
    const publication = await source.connect(httpServer(`http://127.0.0.1:${remote.port}/mcp`), scope);
    // Checked against that schema's pattern, the result would take V8 longer than the age of the universe.
    expect(await publication.call(call("burn"))).toEqual({ output: 'burn: {"text":"hi"}', isError: false });
  });

  test("only included tools are listed, and only they can be called", async () => {
    await using remote = await startMcpServer();
    const source = new HttpToolSource(configSchema.parse(loopback));
    const policy = { tools: { mode: "include" as const, names: ["look"] } };
    const server = httpServer(`http://127.0.0.1:${remote.port}/mcp`, { policy });
    const publication = await source.connect(server, scope);
    expect(publication.tools.map(({ name }) => name)).toEqual(["look"]);
    expect(await publication.call(call("echo"))).toEqual({
      output: "There is no tool 'echo'.",
      isError: true,
    });
  });

  test("its tools aren't listed again, however it asks for that", async () => {
    const methods: string[] = [];
    const instead = ({ id, method }: Asked) => {
      methods.push(method);
      if (method !== "tools/call") return undefined;
      return { jsonrpc: "2.0", id, error: { code: -32_020, message: "headers of an older list" } };
    };
    await using remote = await startMcpServer(undefined, instead);
    const source = new HttpToolSource(configSchema.parse(loopback));
    const publication = await source.connect(httpServer(`http://127.0.0.1:${remote.port}/mcp`), scope);
    const listed = methods.filter((method) => method === "tools/list").length;
    expect(await publication.call(call("echo"))).toEqual({
      output: expect.stringContaining("headers of an older list"),
      isError: true,
    });
    expect(methods.filter((method) => method === "tools/list")).toHaveLength(listed);
    expect(await publication.call(call("unlisted"))).toMatchObject({ isError: true });
    expect(methods.filter((method) => method === "tools/call")).toHaveLength(1);
  });

  test("one that answers an unknown method with null is asked in another way", async () => {
    const methods: string[] = [];
    const answers: Readonly<Record<string, unknown>> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
      },
      "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
    };
    const old = createServer(async (request, response) => {
      const { id, method } = JSON.parse((await text(request)) || "{}");
      methods.push(method);
      const known = method in answers ? { jsonrpc: "2.0", id, result: answers[method] } : null;
      const body = id === undefined ? "" : JSON.stringify(known);
      response
        .writeHead(200, { "content-type": "application/json", "content-length": body.length })
        .end(body);
    });
    old.listen(0, "127.0.0.1");
    await once(old, "listening");
    onTestFinished(() => void old.close());
    const { port } = old.address() as AddressInfo;
    const source = new HttpToolSource(configSchema.parse(loopback));
    const publication = await source.connect(httpServer(`http://127.0.0.1:${port}/mcp`), scope);
    expect(publication.tools.map(({ name }) => name)).toEqual(["echo"]);
    // It was asked for something that it doesn't know.
    expect(methods[0]).not.toBe("initialize");
  });

  test("a redirect isn't followed: it would carry the credentials along", async () => {
    await using elsewhere = await startMcpServer();
    await using remote = await startMcpServer(() =>
      Response.redirect(`http://127.0.0.1:${elsewhere.port}/mcp`, 307),
    );
    const source = new HttpToolSource(configSchema.parse(loopback));
    await expect(
      source.connect(httpServer(`http://127.0.0.1:${remote.port}/moved`), scope),
    ).rejects.toThrow();
    expect(elsewhere.headers).toEqual([]);
  });
});

describe("a server's encoding", () => {
  test.each([
    ["gzip", "what it said"],
    ["zstd", 'the server answered in "zstd"'],
    ["br", 'the server answered in "br"'],
    ["gzip, gzip", 'the server answered in "gzip, gzip"'],
  ])("%s: %s", async (coding, outcome) => {
    const accepted: unknown[] = [];
    const remote = createServer((request, response) => {
      accepted.push(request.headers["accept-encoding"]);
      response.writeHead(400, { "content-type": "text/plain", "content-encoding": coding });
      response.end(gzipSync("what it said"));
    });
    remote.listen(0, "127.0.0.1");
    await once(remote, "listening");
    const { port } = remote.address() as AddressInfo;
    const source = new HttpToolSource(configSchema.parse(loopback));
    const connected = source.connect(httpServer(`http://127.0.0.1:${port}/mcp`), scope);
    const failure = await connected.then(
      () => "connected",
      (error: unknown) => inspect(error),
    );
    expect(failure).toContain(outcome);
    expect(new Set(accepted)).toEqual(new Set(["identity"]));
    remote.close();
  });
});

describe("addresses are closed unless a range allows them", () => {
  const control = { ...loopback };
  const spellings = ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "017700000001", "[::ffff:127.0.0.1]"];
  test.each(spellings)("%s, refused without its range", async (host) => {
    await using remote = await startMcpServer();
    const server = httpServer(`http://${host}:${remote.port}/mcp`);
    const source = new HttpToolSource(configSchema.parse({ loopbackWithoutTls: true }));
    await expect(source.connect(server, scope)).rejects.toThrow();
    expect(remote.headers).toEqual([]);
  });

  test("127.0.0.1 is reached with its range (the control)", async () => {
    await using remote = await startMcpServer();
    const source = new HttpToolSource(configSchema.parse(control));
    await source.connect(httpServer(`http://127.0.0.1:${remote.port}/mcp`), scope);
    expect(remote.headers.length).toBeGreaterThan(0);
  });

  test("a name is judged by its addresses, all of which must be allowed", async () => {
    await using remote = await startMcpServer();
    const server = httpServer(`http://tools.example:${remote.port}/mcp`);
    const reach = (config: object, lookup: Lookup) =>
      new HttpToolSource(configSchema.parse(config), lookup).connect(server, scope);
    await expect(reach({}, leadingTo(["127.0.0.1"]))).rejects.toThrow();
    await expect(reach(control, leadingTo(["127.0.0.1", "10.0.0.1"]))).rejects.toThrow();
    expect(remote.headers).toEqual([]);
    await reach(control, leadingTo(["127.0.0.1"]));
    expect(remote.headers.length).toBeGreaterThan(0);
  });

  test.each([
    ["also allows addresses", 0, true],
    ["allows only its own port", 1, false],
  ])("a range of the run's boundary %s", async (_what, offset, reached) => {
    await using remote = await startMcpServer();
    const rules = [{ kind: "range", cidr: "127.0.0.1/32", family: 4, port: remote.port + offset }] as const;
    const bounded: Boundary = { ...open, network: { mode: "allowlist", rules } };
    const within = new TestScope(bounded);
    const source = new HttpToolSource(configSchema.parse({ loopbackWithoutTls: true }));
    const connecting = source.connect(httpServer(`http://127.0.0.1:${remote.port}/mcp`), within);
    if (reached) await connecting;
    else await expect(connecting).rejects.toThrow();
    await within.close();
    expect(remote.headers.length > 0).toBe(reached);
  });
});

describe("the plan", () => {
  const listed: Boundary = {
    ...open,
    network: { mode: "allowlist", rules: [{ kind: "host", name: "tools.example", subdomains: false }] },
  };
  test.each([
    ["network on", open, "https://tools.example/mcp", []],
    ["listed", listed, "https://tools.example/mcp", []],
    ["not listed", listed, "https://other.example/mcp", ["network.allow-host"]],
    ["network off", closed, "https://tools.example/mcp", ["network.deny"]],
  ])("%s", (_what, boundary, url, gaps) => {
    const source = new HttpToolSource(configSchema.parse({}));
    expect(source.gaps(boundary, httpServer(url)).map(({ capability }) => capability)).toEqual(gaps);
  });

  test.each([
    ["https://tools.example/mcp", {}, 0],
    ["http://tools.example/mcp", {}, 1],
    ["http://127.0.0.1/mcp", {}, 1],
    ["http://127.0.0.1/mcp", loopback, 0],
    ["http://tools.example/mcp", loopback, 1],
    ["https://user:pass@tools.example/mcp", {}, 1],
  ])("%s under %j has %i issue(s)", (url, config, count) => {
    expect(new HttpToolSource(configSchema.parse(config)).issues(httpServer(url))).toHaveLength(count);
  });

  test("its claims are proven by its probe", async () => {
    const findings = await new HttpToolSource(configSchema.parse({})).probe(new AbortController().signal);
    expect(findings.map(({ capability, proven }) => [capability, proven])).toEqual([
      ["network.allow-host", true],
      ["network.allow-cidr", true],
    ]);
  });
});
