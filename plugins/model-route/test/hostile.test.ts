import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { configSchema, ModelRouteGateway } from "../src/index.js";
import { key, routeTo, serving, useOf } from "./support/stage.js";

const fine = '{"usage":{"input_tokens":1,"output_tokens":1}}';

/** An endpoint that records what it receives. */
async function endpoint() {
  const seen: { url: string | undefined; headers: IncomingHttpHeaders; body: string }[] = [];
  const origin = await serving(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    seen.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
    response.writeHead(200, { "content-type": "application/json", "set-cookie": "a=b" }).end(fine);
  });
  return { origin, seen };
}

describe("requests of a hostile agent", () => {
  it("a body over the limit is refused before any of it is sent, and freed", async () => {
    const { origin, seen } = await endpoint();
    const { send, held } = routeTo(useOf({ endpoint: origin }), { limits: { requestBytes: 1_000 } });
    let pulled = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(400));
      },
    });
    expect((await send(endless)).status).toBe(413);
    expect(pulled).toBeLessThan(10);
    expect(seen).toEqual([]);
    expect(held.held).toBe(0);
  });

  it("bodies over the limit of all runs are refused, and their memory is freed", async () => {
    const { origin } = await endpoint();
    const { send, held } = routeTo(useOf({ endpoint: origin }), { limits: { heldBytes: 100 } });
    expect((await send(JSON.stringify({ model: "m-1", text: "x".repeat(200) }))).status).toBe(429);
    expect((await send()).status).toBe(200);
    expect(held.held).toBe(0);
  });

  it("a body of single bytes takes no more memory than its bytes", async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const { origin, seen } = await endpoint();
    const { send } = routeTo(useOf({ endpoint: origin }));
    const messages = [{ role: "user", content: "x".repeat(20_000) }];
    const text = Buffer.from(JSON.stringify({ model: "m-1", messages }));
    const pieces: WeakRef<ArrayBuffer>[] = [];
    let kept = 0;
    const body = new ReadableStream({
      pull: async (controller) => {
        const piece = Uint8Array.of(text[pieces.length] ?? 0);
        pieces.push(new WeakRef(piece.buffer));
        if (pieces.length < text.length) return controller.enqueue(piece);
        await nextTurn();
        collect();
        kept = pieces.filter((one) => one.deref() !== undefined).length;
        controller.enqueue(piece);
        controller.close();
      },
    });
    expect((await send(body)).status).toBe(200);
    expect(seen[0]?.body).toBe(text.toString());
    expect(kept).toBeLessThan(100);
  });

  it("a body that doesn't end is refused", async () => {
    const { origin } = await endpoint();
    const { send } = routeTo(useOf({ endpoint: origin }), { limits: { receiveMs: 50 } });
    const stuck = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("{")) });
    expect((await send(stuck)).status).toBe(408);
  });

  it("simultaneous requests over the limit get 429, until one ends", async () => {
    const waiting: ServerResponse[] = [];
    const origin = await serving((_request, response) => void waiting.push(response));
    const { send } = routeTo(useOf({ endpoint: origin }), { limits: { concurrentRequests: 1 } });
    for (const round of [1, 2]) {
      const carried = send();
      await expect.poll(() => waiting.length).toBe(round);
      expect((await send()).status).toBe(429);
      waiting.at(-1)?.end(fine);
      expect(await (await carried).text()).toBe(fine);
    }
  });

  it("the agent's headers with a credential, a host or a second body aren't passed on", async () => {
    const { origin, seen } = await endpoint();
    const { send } = routeTo(useOf({ endpoint: origin }));
    const headers = {
      authorization: "Bearer evil",
      "x-api-key": "evil",
      "x-goog-api-key": "evil",
      "transfer-encoding": "chunked",
      "content-encoding": "gzip",
      "x-forwarded-for": "1.2.3.4",
      "openai-organization": "evil",
      "anthropic-beta": "a,b",
    };
    const response = await send(undefined, undefined, { headers });
    expect(seen[0]?.headers).toMatchObject({ "x-api-key": key, "anthropic-beta": "a,b" });
    expect(JSON.stringify(seen[0]?.headers)).not.toContain("evil");
    for (const name of ["content-encoding", "x-forwarded-for", "transfer-encoding"]) {
      expect(seen[0]?.headers).not.toHaveProperty(name);
    }
    expect(response.headers.get("set-cookie")).toBeNull();
  });

  it.each(["?key=evil", "?beta=true&x=1", "?beta=1%0d%0aX-Evil:1", "?alt=sse"])(
    "the query %s is refused",
    async (query) => {
      const { origin, seen } = await endpoint();
      const { send, decisions } = routeTo(useOf({ endpoint: origin }));
      expect((await send(undefined, `/v1/messages${query}`)).status).toBe(400);
      expect(seen).toEqual([]);
      expect(decisions).toMatchObject([{ allowed: false }]);
    },
  );

  it("a WebSocket is answered 426, which sends Codex to POST at once, and doesn't count as a denial", async () => {
    const { send, decisions } = routeTo(
      useOf({ protocol: "openai", basePath: "/v1", endpoint: "http://127.0.0.1:1/v1" }),
    );
    const upgrade = { method: "GET", body: null, headers: { upgrade: "websocket", connection: "upgrade" } };
    expect((await send("", "/v1/responses", upgrade)).status).toBe(426);
    expect(decisions).toEqual([]);
  });
});

describe("the route's connections", () => {
  it("verifies the endpoint's certificate, whatever the process's variables say", async () => {
    skipWithout("openssl");
    const tls = await certificate();
    let requests = 0;
    const origin = await serving((_request, response) => {
      requests += 1;
      response.end(fine);
    }, tls);
    const { send, ends } = routeTo(useOf({ endpoint: origin }));
    expect((await send()).status).toBe(502);
    expect(requests).toBe(0);
    expect(ends).toMatchObject([{ message: expect.stringMatching(/SELF_SIGNED|VERIFY|CERT/) }]);
  });

  it.each(["127.0.0.1", "169.254.169.254", "10.0.0.7", "::1"])("no name leads to %s", async (address) => {
    const { origin, seen } = await endpoint();
    const { port } = new URL(origin);
    const use = useOf({ endpoint: `http://model.example:${port}` });
    const lookup = async () => [address];
    const guarded = routeTo(use, {}, lookup);
    expect((await guarded.send()).status).toBe(502);
    expect(guarded.ends).toMatchObject([{ retryable: false, message: expect.stringContaining(address) }]);
    expect(seen).toEqual([]);
    if (address !== "127.0.0.1") return;
    // The control: the operator names the range.
    const opened = routeTo(use, { allowedRanges: ["127.0.0.0/8"] }, lookup);
    expect((await opened.send()).status).toBe(200);
  });

  it.each([
    ["http://127.0.0.1:1", true],
    ["http://10.1.2.3", true],
    ["http://[::1]:1", true],
    ["https://model.example", true],
    ["http://169.254.169.254", false],
    ["http://[fe80::1]", false],
    ["http://100.100.100.200", false],
    ["https://user:word@model.example", false],
    ["https://model.example/?key=1", false],
    ["ftp://model.example", false],
  ])("%s is a supported endpoint: %s", (endpointUrl, isCarried) => {
    const gateway = new ModelRouteGateway(configSchema.parse({}));
    const issues = gateway.issues(useOf({ endpoint: endpointUrl }));
    expect(issues.length === 0, JSON.stringify(issues)).toBe(isCarried);
  });

  it("an endpoint's own headers are sent, except those that frame the message", async () => {
    const { origin, seen } = await endpoint();
    const use = useOf({ endpoint: `${origin}/llm/`, headers: { "X-Team": "one" } });
    await (await routeTo(use).send()).text();
    expect(seen[0]).toMatchObject({ url: "/llm/v1/messages", headers: { "x-team": "one" } });
    const gateway = new ModelRouteGateway(configSchema.parse({}));
    expect(gateway.issues({ ...use, headers: { Host: "evil" } })).toMatchObject([
      { path: "modelConnection.endpoint.headers.Host" },
    ]);
  });
});

describe("a response that nothing asked for, on a connection that is kept", () => {
  const answered = (text: string) => {
    const type = "content-type: application/json\r\n";
    return `HTTP/1.1 200 OK\r\n${type}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  };
  const poison = '{"poison":true}';

  it("is no request's answer", async () => {
    const server = createServer((socket) => {
      // A connection that the route has ended.
      socket.on("error", () => undefined);
      socket.on("data", (bytes) => {
        if (bytes.toString("latin1").startsWith("POST ")) socket.write(answered(fine) + answered(poison));
      });
    });
    const origin = `http://127.0.0.1:${await listening(server, onTestFinished)}`;
    const route = routeTo(useOf({ endpoint: origin }));
    for (let count = 0; count < 5; count += 1) expect(await (await route.send()).text()).toBe(fine);
    expect(route.ends).toEqual(Array(5).fill(undefined));
  });
});

/** Self-signed, for the address itself: no client has a reason to trust it. */
async function certificate(): Promise<{ readonly key: string; readonly cert: string }> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-route-tls-"));
  const [key, cert] = [join(folder, "key"), join(folder, "cert")];
  try {
    await promisify(execFile)("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
    ]);
    return { key: await readFile(key, "utf8"), cert: await readFile(cert, "utf8") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
