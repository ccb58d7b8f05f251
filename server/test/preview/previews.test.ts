import { createSecretKey, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { previewSettingsSchema } from "../../src/configuration/schema.js";
import type { ConnectionShares } from "../../src/http/connections/connections.js";
import { Previews } from "../../src/preview/previews.js";
import { alive, halfOpen } from "../support/half-open.js";
import { watchPieces } from "../support/pieces-in-turn.js";

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };

/** Says something to each connection as soon as it has a request's header, and remembers what it got. */
async function program(answer: string) {
  const got: string[] = [];
  const server = createServer((socket) => {
    const at = got.push("") - 1;
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      if (got[at] === "") socket.write(answer);
      got[at] += bytes.toString("latin1");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { got, port: portOf(server.address()) };
}

/** Previews of a program that answers this, and what a caller with the URL of one gets for a request. */
async function previewsOf(answer: string, shares?: ConnectionShares) {
  const key = createSecretKey(randomBytes(32));
  const inside = await program(answer);
  const previews = new Previews(
    previewSettingsSchema.parse({ port: 0 }),
    async () => key,
    log,
    ["authorization"],
    shares,
  );
  await previews.listen();
  onTestFinished(() => previews.close());
  const open = async (project?: string) => {
    const connect = async () => connected(inside.port);
    const { host, port, search } = new URL(
      (await previews.open({ port: 4_000, project, connect }).link()).url,
    );
    const send = async (method: string, ...lines: readonly string[]) => {
      const socket = await connected(Number(port));
      socket.write([`${method} /${search} HTTP/1.1`, `host: ${host}`, ...lines].join("\r\n"));
      return socket;
    };
    const ask = async (method: string, ...lines: readonly string[]) => text(await send(method, ...lines));
    return { url: `http://127.0.0.1:${port}`, send, ask };
  };
  return { open, got: inside.got };
}

async function preview(answer: string) {
  const { open, got } = await previewsOf(answer);
  return { ...(await open()), got };
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

function portOf(address: AddressInfo | string | null): number {
  return typeof address === "object" && address !== null ? address.port : 0;
}

const handshake = [
  "connection: upgrade",
  "upgrade: websocket",
  "sec-websocket-version: 13",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
];

describe("a program inside that answers what is no answer", () => {
  const end = ["connection: close", "content-length: 0", "", ""];

  it.each([
    ["a number that is no status", "HTTP/1.1 000 None\r\ncontent-length: 2\r\n\r\nok"],
    ["another one", "HTTP/1.1 099 None\r\ncontent-length: 2\r\n\r\nok"],
    ["another protocol, unasked", "HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"],
    ["another protocol, without its name", "HTTP/1.1 101 Yes\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"],
  ])("gets a 502 to its caller: %s", async (_what, answer) => {
    const { ask } = await preview(answer);
    expect(await ask("POST", ...end)).toMatch(/^HTTP\/1\.1 502 /);
  });

  it.each([
    ["a number that is no status", "HTTP/1.1 000 None\r\ncontent-length: 2\r\n\r\nok"],
    ["another protocol, without its name", "HTTP/1.1 101 Yes\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"],
  ])("gets a 502 to a WebSocket: %s", async (_what, answer) => {
    const { ask } = await preview(answer);
    expect(await ask("GET", ...handshake, "", "")).toMatch(/^HTTP\/1\.1 502 /);
  });

  it("doesn't change what an answer gets", async () => {
    const { ask } = await preview("HTTP/1.1 299 Fine\r\ncontent-length: 2\r\n\r\nok");
    expect(await ask("POST", ...end)).toMatch(/^HTTP\/1\.1 299 .*\r\n\r\nok$/s);
  });
});

it.each([
  [
    "in chunks",
    ["connection: close", "transfer-encoding: chunked", "", "5\r\nhello\r\n0\r\n\r\n"],
    /^DELETE .*\r\ntransfer-encoding: chunked\r\n.*\r\n5\r\nhello\r\n0\r\n\r\n$/is,
  ],
  [
    "of a length that is said to be the connection's",
    ["connection: close, content-length", "content-length: 5", "", "hello"],
    /^DELETE .*\r\ncontent-length: 5\r\n(?:.*\r\n)?\r\nhello$/is,
  ],
])("passes on where a body ends that is sent %s", async (_how, lines, expected) => {
  const { ask, got } = await preview("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  expect(await ask("DELETE", ...lines)).toMatch(/^HTTP\/1\.1 200 /);
  await expect.poll(() => got[0]).toMatch(expected);
});

it("reads a body in chunks of a single byte in turns of the event loop that all callers share", async () => {
  const [count, callers] = [20_000, 4];
  // An answer that isn't complete: one that is would end the request.
  const { send, got } = await preview("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nunfinished");
  const pieces = watchPieces();
  const body = ["transfer-encoding: chunked", "", `${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`];
  await Promise.all(Array.from({ length: callers }, () => send("POST", ...body)));
  const isWhole = (one: string) => one.endsWith("0\r\n\r\n");
  await expect.poll(() => got.filter(isWhole).length, { timeout: 20_000 }).toBe(callers);
  expect(pieces.total()).toBeGreaterThan(callers * count);
  expect(pieces.maxInTurn()).toBeLessThan(1_000);
});

describe("connections of all previews", () => {
  const shares = { unknown: 8, unknownPerPeer: 8, known: 8, tenants: 8, perTenant: 4 };
  const end = ["connection: close", "content-length: 0", "", ""];

  it("of callers without a ticket displace only each other", async () => {
    const { open } = await previewsOf("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", shares);
    const { url, ask } = await open();
    const flood = await halfOpen(url, 40);
    // Before the deadline of their headers, which ends them too.
    await expect.poll(() => alive(flood).length, { timeout: 5_000 }).toBeLessThanOrEqual(8);
    expect(await ask("POST", ...end)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("of one project leave places for another one's", async () => {
    const { open } = await previewsOf("HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nunfinished", shares);
    const [one, same, other] = [await open("one"), await open("one"), await open("other")];
    const held = [];
    for (const { send } of [one, one, one, same]) held.push(await send("POST", ...end));
    await Promise.all(held.map((socket) => once(socket, "data")));
    expect(await same.ask("POST", ...end)).toMatch(/^HTTP\/1\.1 503 .*its project/s);
    const [answered] = await once(await other.send("POST", ...end), "data");
    expect(String(answered)).toMatch(/^HTTP\/1\.1 200 /);
    expect(held.map(({ destroyed }) => destroyed)).not.toContain(true);
  });

  it("that are WebSockets are in use", async () => {
    const { open } = await previewsOf(
      "HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
      shares,
    );
    const { send, ask } = await open("one");
    const held = [];
    for (let count = 0; count < 4; count += 1) held.push(await send("GET", ...handshake, "", ""));
    await Promise.all(held.map((socket) => once(socket, "data")));
    expect(await ask("GET", ...handshake, "", "")).toMatch(/^HTTP\/1\.1 503 /);
    expect(held.map(({ destroyed }) => destroyed)).not.toContain(true);
  });
});
