import { once } from "node:events";
import { Agent, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { ownPath } from "../../src/proxy/http/own-response.js";
import {
  allow,
  connectThrough,
  denyAll,
  exchange,
  gather,
  openOrigin,
  openSession,
  socksThrough,
} from "./session.js";

const port = 3128;

/** What the session itself serves: says what it was asked. */
const own = {
  port,
  listener: (asked: IncomingMessage, response: ServerResponse) => {
    asked.resume();
    response.end(`own ${asked.method} ${asked.url}`);
  },
};

async function withOrigin() {
  const origin = await openOrigin({ listener: (asked, response) => response.end(`origin ${asked.url}`) });
  onTestFinished(() => origin.close());
  return `ok.test:${origin.port}`;
}

async function open(policy = allow(["ok.test"]), limits = {}) {
  const session = await openSession(policy, { own, limits });
  onTestFinished(() => session.close());
  return session;
}

const asked = (path: string, host = "127.0.0.1:3128", ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, `Host: ${host}`, ...headers, "", ""].join("\r\n");
const last = "Connection: close";

test.each([
  ["/mcp", "/mcp"],
  ["/http://a.test/", "/http://a.test/"],
  ["http://127.0.0.1:3128/mcp?a=b", "/mcp?a=b"],
  ["http://LOCALHOST:3128", "/"],
  ["http://localhost:3128?a", "/?a"],
  ["http://127.1:3128/mcp", "/mcp"],
  ["http://user@127.0.0.1:3128/mcp", undefined],
  ["http://127.0.0.1:31280/mcp", undefined],
  ["http://127.0.0.1/mcp", undefined],
  ["http://127.0.0.1.ok.test:3128/", undefined],
  ["https://127.0.0.1:3128/", undefined],
  ["*", undefined],
  ["", undefined],
])("a request for %j asks the session itself for %j", (url, path) => {
  expect(ownPath(url, port)).toBe(path);
});

describe("one address serves the session's own requests and the proxy's", () => {
  it("decides on each request of a kept-alive connection, whichever kind came first", async () => {
    const host = await withOrigin();
    const session = await open();
    for (const kinds of ["opop", "popo"]) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const sockets = new Set<unknown>();
      for (const kind of kinds) {
        const path = kind === "o" ? "/mcp" : `http://${host}/there`;
        const call = request({ socketPath: session.path, agent, path, headers: { host } });
        call.end();
        const [response] = (await once(call, "response")) as [IncomingMessage];
        sockets.add(response.socket);
        expect(await new Response(response as never).text()).toBe(
          kind === "o" ? "own GET /mcp" : "origin /there",
        );
      }
      expect(sockets.size).toBe(1);
      agent.destroy();
    }
  });

  it("serves clients that send everything to the proxy, its own address included", async () => {
    const session = await open(denyAll);
    const url = "http://127.0.0.1:3128/mcp";
    expect(await exchange(session.path, asked(url, "127.0.0.1:3128", last))).toMatch(
      /200[\s\S]*own GET \/mcp/,
    );
    for (const name of ["127.0.0.1", "localhost"]) {
      const { status, socket } = await connectThrough(session.path, `${name}:3128`);
      expect(status).toBe(200);
      socket.write(asked("/mcp") + asked("/more", `${name}:3128`, last));
      const text = String(await gather(socket));
      expect(text.match(/own GET \/(mcp|more)/g)).toEqual(["own GET /mcp", "own GET /more"]);
    }
    const { reply, socket } = await socksThrough(session.path, "127.0.0.1", port);
    expect(reply).toBe(0);
    socket.write(asked("/mcp", "x", last));
    expect(String(await gather(socket))).toContain("own GET /mcp");
    expect(session.decisions).toEqual([]);
  });

  it("reaches nothing else through its own address, and can't be reached through a tunnel to a listed host", async () => {
    const host = await withOrigin();
    const session = await open();
    for (const further of [
      asked(`http://${host}/`, host),
      `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ]) {
      const { socket } = await connectThrough(session.path, "127.0.0.1:3128");
      socket.write(further);
      expect(String(await gather(socket))).toMatch(/^HTTP\/1\.1 400[\s\S]*can't lead to another proxy/);
    }
    const { socket } = await connectThrough(session.path, host);
    socket.write(asked("/mcp", host, last));
    expect(String(await gather(socket))).toContain("origin /mcp");
    const upgrade = asked("/mcp", "127.0.0.1:3128", "Connection: Upgrade", "Upgrade: websocket");
    expect(await exchange(session.path, upgrade)).toMatch(/^HTTP\/1\.1 501/);
  });

  it("doesn't exist if the session serves nothing", async () => {
    const session = await openSession(allow(["ok.test"]));
    onTestFinished(() => session.close());
    expect(await exchange(session.path, asked("/mcp"))).toMatch(/^HTTP\/1\.1 400/);
    expect((await connectThrough(session.path, "127.0.0.1:3128")).status).toBe(403);
    expect((await socksThrough(session.path, "127.0.0.1", port)).reply).toBe(2);
  });
});

describe("a client that doesn't finish its request loses its connection", () => {
  const sent = async (path: string, text: string) => {
    const socket = connect(path);
    socket.write(text);
    return String(await gather(socket));
  };

  it.each([
    ["nothing", ""],
    ["half a method", "PO"],
    ["half a header", "POST /mcp HTTP/1.1\r\nHost: x\r\n"],
    ["half a proxied header", "GET http://ok.test/ HTTP/1.1\r\nHost: ok"],
  ])("after %s", async (_what, text) => {
    const session = await open(denyAll, { handshakeMs: 40 });
    expect(await sent(session.path, text)).toBe("");
    await expect.poll(() => session.proxy.openSockets).toBe(0);
  });

  it("after half a header that follows a whole request, or inside a tunnel to the session itself", async () => {
    const session = await open(denyAll, { handshakeMs: 40 });
    expect(await sent(session.path, `${asked("/first")}GET /second HT`)).toMatch(/own GET \/first$/);
    const { socket } = await connectThrough(session.path, "127.0.0.1:3128");
    socket.write("GET /thi");
    expect(String(await gather(socket))).toBe("");
  });

  it("after half a body", async () => {
    const session = await openSession(denyAll, {
      own: {
        port,
        listener: (request, response) => void request.resume().once("end", () => response.end("all")),
      },
      limits: { bodyMs: 40 },
    });
    onTestFinished(() => session.close());
    const header = "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\n";
    expect(await sent(session.path, `${header}ab`)).toBe("");
    expect(await sent(session.path, `${header}abcd`)).toContain("all");
  });

  it("with too many pipelined requests", async () => {
    const session = await openSession(denyAll, {
      own: { port, listener: () => undefined },
      limits: { pipelined: 3 },
    });
    onTestFinished(() => session.close());
    const three = connect(session.path);
    onTestFinished(() => void three.destroy());
    three.write(asked("/").repeat(3));
    expect(await sent(session.path, asked("/").repeat(4))).toBe("");
    expect(three.destroyed).toBe(false);
    await expect.poll(() => session.proxy.openSockets).toBe(1);
  });

  it("but not while its response is being prepared", async () => {
    const session = await openSession(denyAll, {
      own: { port, listener: (_request, response) => void setTimeout(() => response.end("late"), 150) },
      limits: { handshakeMs: 20, bodyMs: 20, idleMs: 20 },
    });
    onTestFinished(() => session.close());
    expect(await exchange(session.path, asked("/slow", "x", last))).toContain("late");
  });
});
