import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as after } from "node:timers/promises";
import { freePort } from "@ambit/backend-kit";
import type { Log } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { ConfigurationInvalid } from "../../../src/configuration/problems.js";
import type { ServerState } from "../../../src/http/health/answers.js";
import { HealthListener } from "../../../src/http/health/health.js";
import { alive, halfOpen, statusOf } from "../../support/half-open.js";
import { saying, waiting } from "../../support/scripted-agent.js";
import { asking, serveScript } from "../../support/server.js";
import { serveStored } from "../../support/stored-server.js";
import { unsteadyStore } from "../../support/unsteady-store.js";

const health = { port: 0 };

/** A server with a health listener, whose address isn't undefined. */
async function serveHealth(options: Parameters<typeof serveScript>[1] = {}, script = saying("x")) {
  const { server: settings, ...configuration } = options.configuration ?? {};
  const served = await serveScript(script, {
    ...options,
    configuration: { ...configuration, server: { health, ...settings } },
  });
  const { healthUrl } = served.server;
  if (healthUrl === undefined) throw new Error("there is no health listener");
  return { ...served, healthUrl, ask: (path: string) => fetch(`${healthUrl}${path}`) };
}

const good: ServerState = { probing: false, replicaId: "one", ready: { status: "ready", store: "none" } };

/** A health listener without a server. */
const listening = {
  host: "127.0.0.1",
  port: 0,
  maxConnections: 8,
  stallTimeoutMs: 60_000,
  allowedHosts: [],
  log: { debug() {}, info() {}, warn() {}, error() {} },
  initialState: good,
  state: async () => good,
};

/** What a connection gets for these bytes, until it ends. */
async function rawAnswer(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {
    // The server doesn't read what comes after a request.
  });
  socket.write(bytes);
  return text(socket).catch(() => "");
}

it("answers as the main port does, without a token, to the end of a connection", async () => {
  const { url, healthUrl, ask } = await serveHealth({ token: "s3cret-token-of-16" });
  for (const path of ["/health", "/ready"]) {
    // Not before the host is probed: one may answer before that ends, and the other after.
    const both = async () =>
      JSON.stringify([await (await ask(path)).json(), await (await fetch(url + path)).json()]);
    await expect.poll(both).toMatch(/^\[(.+),\1\]$/);
    const response = await ask(path);
    expect([response.status, response.headers.get("connection")]).toEqual([200, "close"]);
  }
  expect((await ask("/runs")).status).toBe(404);
  expect((await fetch(`${healthUrl}/health`, { method: "HEAD" })).status).toBe(200);
  const posted = await fetch(`${healthUrl}/health`, { method: "POST", body: "x" });
  expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

it("isn't there unless it has a port", async () => {
  const { server } = await serveScript(saying("x"));
  expect(server.healthUrl).toBeUndefined();
});

it("refuses web pages on loopback, like the main port", async () => {
  const { url, healthUrl } = await serveHealth({
    configuration: { server: { health, allowedHosts: ["ambit.internal"] } },
  });
  for (const [headers, status] of [
    [{ host: "ambit.internal" }, 200],
    [{ host: "evil.example" }, 403],
    [{ origin: "http://evil.example" }, 403],
    [{ "sec-fetch-site": "cross-site" }, 403],
  ] as const) {
    expect([headers, await statusOf(`${url}/health`, { headers })]).toEqual([headers, status]);
    expect([headers, await statusOf(`${healthUrl}/health`, { headers })]).toEqual([headers, status]);
  }
});

describe("/ready", () => {
  it("says that the server starts, is ready, has lost its store, and drains, until it has ended", async () => {
    const port = await freePort();
    const ask = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return [response.status, (await response.json()) as object] as const;
    };
    const opening = Promise.withResolvers<void>();
    const { plugin, state } = await unsteadyStore(opening.promise);
    const serving = serveStored(waiting, {
      store: plugin,
      configuration: { server: { drainMs: 60_000, health: { port } }, store: { retryTimeoutMs: 60_000 } },
    });
    await expect
      .poll(() => ask("/ready").catch(() => "no answer"))
      .toEqual([503, { status: "starting", store: "opening" }]);
    expect(await ask("/health")).toMatchObject([200, { status: "ok", probing: true }]);
    opening.resolve();
    const { post, server, runner } = await serving;
    await expect.poll(() => ask("/ready")).toEqual([200, { status: "ready", store: "reachable" }]);
    state.how = "fails";
    await expect.poll(() => ask("/ready")).toEqual([503, { status: "unavailable", store: "unreachable" }]);
    expect(await ask("/health")).toMatchObject([200, { status: "ok" }]);
    state.how = "works";
    await expect.poll(() => ask("/ready")).toEqual([200, { status: "ready", store: "reachable" }]);
    const response = await post("/run", { ...asking, runId: "one" }, { accept: "application/x-ndjson" });
    const reader = response.body?.getReader();
    await reader?.read();
    const closed = server.close();
    await expect.poll(() => ask("/ready")).toEqual([503, { status: "draining", store: "reachable" }]);
    expect(await ask("/health")).toMatchObject([200, { status: "ok" }]);
    runner.cancel("one");
    await reader?.cancel();
    await closed;
    await expect(ask("/health")).rejects.toThrow("fetch failed");
  });
});

describe("a port that isn't free", () => {
  it("is named before anything else starts", async () => {
    const { healthUrl } = await serveHealth();
    const port = Number(new URL(healthUrl).port);
    const second = serveScript(saying("x"), { configuration: { server: { health: { port } } } });
    await expect(second).rejects.toThrow(ConfigurationInvalid);
    await expect(second).rejects.toThrow(
      `server.health: can't listen on 127.0.0.1:${port}: listen EADDRINUSE`,
    );
  });

  it("of the server ends the health listener too", async () => {
    const { url } = await serveScript(saying("x"));
    const port = await freePort();
    const second = serveScript(saying("x"), {
      port: new URL(url).port,
      configuration: { server: { health: { port } } },
    });
    await expect(second).rejects.toThrow(
      /server: can't listen .*EADDRINUSE.*: another program listens there: end it, or set another server.port \(--port\)$/,
    );
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow("fetch failed");
  });
});

describe("hostile neighbours of the health listener", () => {
  it("half-open requests only displace each other, and end with the deadline", async () => {
    const { url, healthUrl } = await serveHealth();
    const flood = await halfOpen(healthUrl, 600);
    await expect.poll(() => alive(flood).length).toBeLessThanOrEqual(256);
    expect(await statusOf(`${healthUrl}/health`)).toBe(200);
    expect(await statusOf(`${url}/health`)).toBe(200);
    await expect.poll(() => alive(flood).length).toBe(0);
  });

  it("end the oldest connection with each one too many, and no other", async () => {
    const listener = await HealthListener.start({ ...listening, maxConnections: 8 });
    onTestFinished(() => listener.close());
    const [first, ...others] = await halfOpen(listener.url, 8);
    if (first === undefined) throw new Error("nothing was opened");
    const ended = once(first, "close");
    const [last] = await halfOpen(listener.url, 1);
    await ended;
    // Long before the deadline that ends all of them.
    await after(200);
    expect(alive(others).length).toBe(7);
    expect(last?.closed).toBe(false);
  });

  it("get one answer for a thousand requests that arrive together", async () => {
    const { healthUrl } = await serveHealth();
    const answer = await rawAnswer(
      healthUrl,
      "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(1_000),
    );
    expect(answer.split("HTTP/1.1").length - 1).toBeLessThanOrEqual(1);
    expect(await statusOf(`${healthUrl}/health`)).toBe(200);
  });

  it.each([
    ["a long header", `GET /health HTTP/1.1\r\nx: ${"x".repeat(5_000)}`, /^HTTP\/1\.1 431 /],
    [
      "a long header that ends",
      `GET /health HTTP/1.1\r\nx: ${"x".repeat(5_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 /,
    ],
    ["no HTTP", "\u0016\u0003\u0001\r\n\r\n", /^HTTP\/1\.1 400 /],
  ])("get a refusal for %s", async (_what, bytes, expected) => {
    const { healthUrl } = await serveHealth();
    expect(await rawAnswer(healthUrl, bytes)).toMatch(expected);
  });
});

it("starts again on its port after its thread failed", async () => {
  // What no server says, so that the thread throws.
  const bad = { ...good, ready: undefined } as unknown as ServerState;
  let state = bad;
  const errors: unknown[] = [];
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (_fields, message) => void errors.push(message),
  };
  const listener = await HealthListener.start({
    ...listening,
    log,
    state: async () => state,
  });
  onTestFinished(() => listener.close());
  const { url } = listener;
  await listener.tell();
  await expect.poll(() => statusOf(`${url}/ready`)).not.toBe(200);
  state = good;
  await expect.poll(() => statusOf(`${url}/ready`)).toBe(200);
  expect(listener.url).toBe(url);
  expect(errors).toContain("the thread of the health listener failed");
});
