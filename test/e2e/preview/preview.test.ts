// needs: jail
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingHttpHeaders, request } from "node:http";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { unavailableReason as whyNoDaytona } from "@ambit/daytona-loopback";
import { unavailableReason } from "@ambit/docker-engine";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { expect, it } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import { serveFromContainers, serveFromDaytona, serveFromPods } from "../support/backends/serve-from.js";
import { servePreviews } from "./servers.js";

/** Says what it was sent, tries to reach beyond its origin, and echoes WebSocket frames. */
const program = `
const { createServer } = require("node:http");
const { createHash } = require("node:crypto");
const server = createServer((request, response) => {
  const { method, url, headers } = request;
  response.setHeader("set-cookie", ["mine=1; Domain=localhost; Path=/", "ambit-preview=stolen"]);
  response.setHeader("strict-transport-security", "max-age=99; includeSubDomains");
  response.setHeader("clear-site-data", '"cookies"');
  response.setHeader("service-worker-allowed", "/");
  if (url === "/away") return response.writeHead(302, { location: "http://localhost:4000/here" }).end();
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => response.end(JSON.stringify({ method, url, headers, body })));
});
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: Upgrade\\r\\nsec-websocket-accept: " + accept + "\\r\\n\\r\\n");
  socket.on("error", () => {});
  socket.on("data", (frame) => {
    const size = frame[1] & 127;
    const data = Buffer.from(frame.subarray(6, 6 + size).map((byte, at) => byte ^ frame[2 + (at % 4)]));
    socket.write(Buffer.concat([Buffer.from([0x81, size]), data]));
  });
});
server.listen(4000, "127.0.0.1");
`;

const asking = {
  ...demo("run node server.cjs >/tmp/server.log 2>&1 & sleep 1", "say served"),
  harnessFiles: [{ path: "server.cjs", content: program }],
  permissions: { default: "allow" },
  sandboxPermission: { network: "off", filesystem: "workspace" },
};
const ports = [{ port: 4_000, name: "web" }];
const preview = { port: 0 };

/** As a browser asks, which finds every name below localhost on this machine. */
function ask(url: URL, options: { method?: string; headers?: Record<string, string> } = {}) {
  const { port, host, pathname, search } = url;
  const headers = { host, ...options.headers };
  return request({ ...options, host: "127.0.0.1", port, path: pathname + search, headers, agent: false });
}

async function get(url: URL, headers: Record<string, string> = {}, method = "GET", body = "") {
  const asked = ask(url, { method, headers });
  asked.end(body);
  const [response] = await once(asked, "response");
  const found: { status: number; headers: IncomingHttpHeaders; body: string } = {
    status: response.statusCode,
    headers: response.headers,
    body: await text(response),
  };
  return found;
}

async function upgrade(url: URL, headers: Record<string, string>): Promise<Duplex> {
  const key = "dGhlIHNhbXBsZSBub25jZQ==";
  const asked = ask(url, {
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": key,
      ...headers,
    },
  });
  asked.end();
  const refused = once(asked, "response").then(([response]) => {
    throw new Error(`refused: ${response.statusCode}`);
  });
  const [response, socket] = await Promise.race([once(asked, "upgrade"), refused]);
  const expected = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  expect(response.headers["sec-websocket-accept"]).toBe(expected);
  return socket;
}

async function echoed(socket: Duplex, words: string): Promise<string> {
  const data = Buffer.from(words);
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | data.length, 0, 0, 0, 0]), data]));
  const [frame] = await once(socket, "data");
  return String(frame.subarray(2));
}

async function run(server: Server, more: object) {
  return JSON.parse(await (await server.post("/run", { ...asking, ...more })).text());
}

interface Event {
  readonly name?: string;
  readonly data: { readonly url: string };
}

function previewIn({ events }: { readonly events: readonly Event[] }): URL {
  const preview = events.find(({ name }) => name === "preview");
  return new URL(preview?.data.url ?? "about:blank");
}

/** What the agent started inside is served to everyone who has the URL, until the session ends. */
async function expectPreview(server: Server, sandbox: string, more: object = {}): Promise<void> {
  const shown = { ports, sandbox, sessionId: `shown-${sandbox}`, ...more };
  const result = await run(server, shown);
  expect(result, server.log()).toMatchObject({ ok: true, output: "served", receipt: { ports } });
  const url = previewIn(result);
  expect(url.hostname).toMatch(/^[0-9a-f]{32}\.localhost$/);
  expect(url.origin).not.toBe(server.url);
  expect(server.log()).not.toContain(url.searchParams.get("ambit-preview"));

  // A page's first request: the ticket goes into a cookie, and out of the address.
  const first = await get(new URL(`${url.origin}//elsewhere.example/?a=1&${url.search.slice(1)}`));
  expect(first).toMatchObject({ status: 303 });
  expect(first.headers).toMatchObject({
    location: `${url.origin}//elsewhere.example/?a=1`,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
  });
  const [set = ""] = first.headers["set-cookie"] ?? [];
  expect(set).toMatch(/; Path=\/; Max-Age=3(?:600|5\d\d); HttpOnly; SameSite=Lax$/);
  const cookie = set.split(";", 1)[0] ?? "";

  const page = new URL("/page?b=2", url);
  const sent = {
    cookie: `theirs=1; ${cookie}`,
    authorization: "Bearer the-api-token",
    "x-forwarded-for": "10.0.0.1",
    referer: `${url.origin}/?${url.search.slice(1)}`,
    origin: url.origin,
  };
  const answer = await get(page, sent, "POST", "words");
  expect(answer.status).toBe(200);
  const inside = JSON.parse(answer.body);
  expect(inside).toMatchObject({ method: "POST", url: "/page?b=2", body: "words" });
  expect(inside.headers).toMatchObject({
    host: "localhost:4000",
    origin: "http://localhost:4000",
    cookie: "theirs=1",
  });
  const ticket = url.searchParams.get("ambit-preview") ?? "none";
  for (const secret of ["the-api-token", ticket, "10.0.0.1"]) expect(answer.body).not.toContain(secret);
  // The control: the program sent all of these.
  expect(answer.headers["set-cookie"]).toEqual(["mine=1; Path=/"]);
  expect(Object.keys(answer.headers)).not.toEqual(expect.arrayContaining(["strict-transport-security"]));
  for (const name of ["strict-transport-security", "clear-site-data", "service-worker-allowed"])
    expect(answer.headers[name], name).toBeUndefined();
  expect(answer.headers).toMatchObject({ "referrer-policy": "same-origin", "cache-control": "private" });
  expect((await get(new URL("/away", url), { cookie })).headers.location).toBe("/here");

  // No other caller: without a ticket, with a changed one, another's, or by a page of another origin.
  const changed = new URL(url);
  changed.searchParams.set("ambit-preview", `${ticket.slice(0, -2)}${ticket.endsWith("AA") ? "BB" : "AA"}`);
  const later = new URL(url);
  later.searchParams.set("ambit-preview", `z${ticket}`);
  const other = new URL(url);
  other.hostname = `${"0".repeat(32)}.localhost`;
  const api = new URL("/", url);
  api.hostname = "localhost";
  expect((await get(page)).status).toBe(403);
  expect((await get(changed)).status).toBe(403);
  expect((await get(later)).status).toBe(403);
  expect((await get(other)).status).toBe(404);
  expect((await get(api, { cookie })).status).toBe(404);
  const foreign = { cookie, origin: "http://evil.localhost", "sec-fetch-site": "same-site" };
  expect((await get(page, { ...foreign, "sec-fetch-mode": "cors" })).status).toBe(403);
  await expect(upgrade(page, foreign)).rejects.toThrow("refused: 403");
  // The API has no preview, and the listener of previews no API.
  expect((await get(new URL("/health", url), { cookie })).body).toContain('"url":"/health"');

  const socket = await upgrade(new URL("/socket", url), { cookie, origin: url.origin });
  expect(await echoed(socket, "over a WebSocket")).toBe("over a WebSocket");

  // The session's next run has the same origin.
  const again = await run(server, { ...shown, ...demo("say again") });
  expect(previewIn(again).origin).toBe(url.origin);
  expect(await echoed(socket, "still there")).toBe("still there");

  const closed = once(socket, "close");
  socket.resume();
  const ended = await fetch(`${server.url}/sessions/${shown.sessionId}`, { method: "DELETE" });
  expect(ended.ok).toBe(true);
  await closed;
  expect((await get(page, { cookie })).status).toBe(404);
  expect((await get(url)).status).toBe(404);
}

it("serves what the agent started inside, to everyone who has the URL, until the session ends", {
  timeout: 120_000,
}, async () => {
  await expectPreview(await servePreviews({ port: 0 }), "local");
});

it("serves the same from a container", { timeout: 240_000 }, async (context) => {
  const missing = unavailableReason("runc");
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await expectPreview(await serveFromContainers({ server: { preview } }), "runc");
});

it("serves the same from a pod", { timeout: 300_000 }, async (context) => {
  const missing = await ownUnavailableReason();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await expectPreview(await serveFromPods({ server: { preview } }), "kubernetes");
});

it("serves the same from Daytona, on any port but those of its own daemon", {
  timeout: 240_000,
}, async (context) => {
  const missing = whyNoDaytona();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const server = await serveFromDaytona({ server: { preview } });
  const sandboxPermission = { network: "off" };
  await expectPreview(server, "daytona", { sandboxPermission });
  const taken = { sandbox: "daytona", sandboxPermission, ports: [...ports, { port: 2_280, name: "daemon" }] };
  expect(await run(server, taken)).toMatchObject({
    failure: {
      gaps: [{ actor: "daytona", capability: "inbound.ports", fix: expect.stringContaining("another port") }],
    },
  });
});

it("ends with its time, and has no more connections than it may", { timeout: 120_000 }, async () => {
  const server = await servePreviews({ port: 0, ttlMs: 6_000, maxConnections: 2 });
  const url = previewIn(await run(server, { ports, sessionId: "brief" }));
  const open = [await upgrade(url, {}), await upgrade(url, {})];
  expect((await get(url, {}, "POST")).status).toBe(503);
  const ended = open.map((socket) => once(socket.resume(), "close"));
  await Promise.all(ended);
  expect((await get(url)).status).toBe(403);
});

it("refuses ports that can't be reached, at plan time, with the fix", { timeout: 120_000 }, async () => {
  const without = await servePreviews({});
  expect(await run(without, { ports })).toMatchObject({
    failure: { issues: [{ path: "ports", message: expect.stringContaining("server.preview.port") }] },
  });
  const server = await servePreviews({ port: 0 });
  const network = { ...asking.sandboxPermission, network: "on" };
  expect(await run(server, { ports, sandboxPermission: network })).toMatchObject({
    failure: {
      gaps: [{ actor: "local", capability: "inbound.ports", fix: expect.stringContaining("network") }],
    },
  });
  expect(await run(server, { ports: [...ports, { port: 4_000, name: "again" }] })).toMatchObject({
    failure: { issues: [{ path: "ports[1].port" }] },
  });
});
