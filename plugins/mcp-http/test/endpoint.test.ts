import http from "node:http";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, it } from "vitest";
import { openEndpoint } from "../src/endpoint.js";
import plugin, { configSchema, McpHttpDelivery } from "../src/index.js";
import { probeSecrets } from "../src/probe.js";
import { legacyClient, messagesOf, modernClient, post } from "./clients.js";
import { echo, type Published, publish, tools } from "./publications.js";

const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
const callOf = (id: string | number, params: object = { name: "bare", arguments: {} }) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params,
});

/** `fetch` sets these headers itself; an attacker's program can set any. */
async function statusWith(
  published: Published,
  more: http.RequestOptions,
  path = "/mcp",
): Promise<number | undefined> {
  const { port } = new URL(published.url);
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...published.headers,
      ...more.headers,
    };
    const outgoing = http.request(
      { host: "127.0.0.1", port, path, method: "POST", ...more, headers },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end(more.method === undefined ? JSON.stringify(list) : undefined);
  });
  response.resume();
  return response.statusCode;
}

describe("access to the endpoint", () => {
  it.each<[string, http.RequestOptions, string, number]>([
    ["the run's own request", {}, "/mcp", 200],
    ["localhost", { headers: { host: "localhost:1" } }, "/mcp", 200],
    ["an origin of this host", { headers: { origin: "http://127.0.0.1:3000" } }, "/mcp", 200],
    ["no token", { headers: { authorization: "" } }, "/mcp", 401],
    ["another token", { headers: { authorization: "Bearer x" } }, "/mcp", 401],
    [
      "another token and another host: the token is checked first",
      { headers: { authorization: "Bearer x", host: "evil.example" } },
      "/mcp",
      401,
    ],
    ["another host", { headers: { host: "evil.example" } }, "/mcp", 403],
    ["a host with the same prefix", { headers: { host: "127.0.0.1.evil.example" } }, "/mcp", 403],
    ["another origin", { headers: { origin: "https://evil.example" } }, "/mcp", 403],
    ["a null origin", { headers: { origin: "null" } }, "/mcp", 403],
    ["another path", {}, "/", 404],
    ["a path below", {}, "/mcp/x", 404],
    ["GET", { method: "GET" }, "/mcp", 405],
    ["DELETE", { method: "DELETE" }, "/mcp", 405],
    ["PUT", { method: "PUT" }, "/mcp", 405],
    ["another content type", { headers: { "content-type": "text/plain" } }, "/mcp", 415],
  ])("answers %s with its own status", async (_what, request, path, status) => {
    for (const careless of [false, true]) {
      const published = await publish(echo, { careless });
      expect(await statusWith(published, request, path)).toBe(status);
      expect(published.listed()).toBe(status === 200);
    }
  });

  it("refuses a body of very many values before it is parsed", async () => {
    const published = await publish();
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[${"{},".repeat(60_000)}0]}}`;
    const response = await post(published, body);
    expect(response.status).toBe(413);
    expect(await response.text()).toContain("The request holds more than 100,000 values.");
  });

  it("accepts a body of up to 1 MiB", async () => {
    const published = await publish();
    const padded = (bytes: number) => {
      const message = JSON.stringify(list);
      return message + " ".repeat(bytes - message.length);
    };
    expect((await post(published, padded(1024 * 1024))).status).toBe(200);
    expect((await post(published, padded(1024 * 1024 + 1))).status).toBe(413);
  });

  it("ends with the run, and aborts open calls", async () => {
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const published = await publish(async ({ signal }) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      ended.resolve();
      return { output: "", isError: true };
    });
    const call = post(published, callOf(1))
      .then((response) => response.text())
      .catch(() => "gone");
    await begun.promise;
    await published.scope.close();
    await ended.promise;
    await call;
    await expect(post(published, list)).rejects.toThrow();
  });
});

describe("messages that aren't valid calls", () => {
  it.each<[string, unknown, Record<string, string>, number, RegExp]>([
    ["no JSON", "{", {}, 400, /-32700/],
    ["no JSON-RPC", { hello: 1 }, {}, 400, /-32[67]00/],
    ["an unknown method", { ...list, method: "prompts/list" }, {}, 200, /-32601/],
    ["arguments that aren't an object", callOf(1, { name: "bare", arguments: [1] }), {}, 200, /-32602/],
    ["an unsupported version", list, { "mcp-protocol-version": "1999-01-01" }, 400, /1999-01-01/],
  ])("%s is answered with an error", async (_what, message, headers, status, expected) => {
    const published = await publish();
    const response = await post(published, message, { headers });
    expect(response.status).toBe(status);
    expect(await response.text()).toMatch(expected);
    expect(published.calls).toHaveLength(0);
  });

  it("a batch is served in the generation that has batches, and refused in the other", async () => {
    const published = await publish();
    const batch = [
      callOf(1, { name: "bare", arguments: { n: 1 } }),
      callOf(2, { name: "bare", arguments: { n: 2 } }),
    ];
    const texts = (await messagesOf(await post(published, batch))).map(
      ({ result }) => result.content[0].text,
    );
    expect(texts.sort()).toEqual(['bare {"n":1}', 'bare {"n":2}']);
    const refused = await post(published, batch, { headers: { "mcp-protocol-version": "2026-07-28" } });
    expect(refused.status).toBe(400);
    expect(published.calls).toHaveLength(2);
  });

  it("notifications are accepted, cancellations of unknown calls ignored", async () => {
    const published = await publish();
    for (const params of [{ requestId: 99, reason: "late" }, { requestId: "x" }, {}]) {
      const response = await post(published, { jsonrpc: "2.0", method: "notifications/cancelled", params });
      expect(response.status).toBe(202);
    }
    const client = await legacyClient(published);
    expect((await client.call("bare")).isError).toBe(false);
  });

  it("a cancellation that names two calls ends neither", async () => {
    const both = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const published: Published = await publish(async (call) => {
      if (published.calls.length === 2) both.resolve();
      await released.promise;
      return { output: String(call.signal.aborted), isError: false };
    });
    const answers = [post(published, callOf(5)), post(published, callOf(5))];
    await both.promise;
    await post(published, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    released.resolve();
    for (const answer of answers)
      expect((await messagesOf(await answer))[0].result.content[0].text).toBe("false");
  });

  it("a cancelled call ends without an answer, which some agents take for a fault of the connection", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const published = await publish(async ({ signal }) => {
      begun.resolve(signal);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { output: "too late", isError: true };
    });
    const answer = await post(published, callOf(7));
    const signal = await begun.promise;
    await post(published, { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } });
    expect(signal.aborted).toBe(true);
    expect(await answer.text()).not.toContain("data:");
  });

  it("a call is aborted when its agent leaves, however soon", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const published = await publish(async ({ signal }) => {
      begun.resolve(signal);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { output: "too late", isError: true };
    });
    const leaving = new AbortController();
    const answer = post(published, callOf(9), { signal: leaving.signal });
    const signal = await begun.promise;
    leaving.abort();
    await expect(answer.then((response) => response.text())).rejects.toThrow();
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    expect(signal.aborted).toBe(true);
  });

  it("an outcome that comes after the turn isn't sent either", async () => {
    const published = await publish(async () => ({ output: "too late", isError: true, isLate: true }));
    expect(await (await post(published, callOf(8))).text()).not.toContain("too late");
  });

  it("a publication that throws yields a failure for the model and a logged cause", async () => {
    const published = await publish(() => Promise.reject(new Error("the key is hunter2")));
    const client = await modernClient(published);
    expect(await client.call("bare")).toEqual({
      text: "Tool 'bare' failed in the runner.",
      isError: true,
    });
    expect(published.scope.logged).toContainEqual({
      level: "error",
      fields: { tool: "bare", error: expect.objectContaining({ message: "the key is hunter2" }) },
    });
  });

  it("a long call's stream begins at once and sends heartbeats unasked", async () => {
    const published = await publish(
      async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return { output: "", isError: true };
      },
      { config: { heartbeatMs: 20 } },
    );
    const response = await post(published, callOf(1));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(new TextDecoder().decode(first?.value)).toMatch(/^: ?keepalive/);
    await reader?.cancel();
  });
});

describe("many calls", () => {
  it.each([
    ["the current generation", modernClient],
    ["the former generation", legacyClient],
  ])("leave nothing behind: %s", async (_which, connect) => {
    const client = await connect(await publish(echo, { noting: false }));
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const run = async () => {
      for (let n = 0; n < 200; n += 1) await client.call("bare", { n, padding: "x".repeat(25_000) });
      collect();
      return getHeapStatistics().used_heap_size;
    };
    const before = await run();
    const after = await run();
    // Leaked calls would take 200 × 25 KB and more, on both sides.
    expect(after - before).toBeLessThan(2_500_000);
  });
});

describe("the plugin", () => {
  it("registers one delivery, synchronously", () => {
    const added: [string, unknown][] = [];
    plugin.register(
      {
        add: (kind, actor) => added.push([kind, actor]),
        log: recordingLog(),
        hasTenants: false,
        secret: () => {},
      },
      plugin.config.parse({}),
    );
    expect(added).toEqual([["delivery", expect.any(McpHttpDelivery)]]);
    expect(plugin.config.safeParse({ heartbeatSeconds: 1 }).success).toBe(false);
  });

  it("touches the network, which is the run's own channel, and secrets, which it keeps out", () => {
    const delivery = new McpHttpDelivery(configSchema.parse({}));
    expect(delivery).toMatchObject({ name: "mcp-http", site: "runner", claims: ["secrets.hidden"] });
    expect(delivery.touches()).toEqual(["network", "secrets"]);
  });

  it("proves its claim by its probe", async () => {
    const findings = await new McpHttpDelivery(configSchema.parse({})).probe(AbortSignal.timeout(10_000));
    expect(findings).toEqual([{ capability: "secrets.hidden", proven: true, how: expect.any(String) }]);
  });

  it.each<[string, typeof openEndpoint, string]>([
    [
      "publishes a tool with all fields",
      ({ tools: given, ...rest }, ...more) =>
        openEndpoint(
          { ...rest, tools: given.map((tool) => ({ ...tool, description: JSON.stringify(tool) })) },
          ...more,
        ),
      "a private field of a tool was published",
    ],
    [
      "publishes nothing",
      (publication, ...more) => openEndpoint({ ...publication, tools: [] }, ...more),
      "the control, the tool's description, was not listed",
    ],
    [
      "reports to the agent why a call threw",
      (publication, ...more) =>
        openEndpoint(
          {
            ...publication,
            call: (call) =>
              publication.call(call).catch((error: Error) => ({ output: error.message, isError: true })),
          },
          ...more,
        ),
      "a private field of a tool was published",
    ],
  ])("catches an endpoint that %s", async (_what, open, reason) => {
    const finding = await probeSecrets(configSchema.parse({}), AbortSignal.timeout(10_000), open);
    expect(finding).toMatchObject({ proven: false, reason });
  });

  it("lists a thousand tools, and names some of them for an unknown tool", async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => ({
      name: `tool_${n}`,
      inputSchema: { type: "object" },
    }));
    const client = await modernClient(await publish(echo, { tools: [...tools, ...many] }));
    expect(await client.listTools()).toHaveLength(1_003);
    await expect(client.call("tool_1000")).rejects.toThrow(/tool_46 and 953 more\.$/);
  });
});
