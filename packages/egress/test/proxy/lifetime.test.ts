import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { connect, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { openEgressProxy } from "../../src/proxy/index.js";
import {
  allow,
  connectThrough,
  denyAll,
  exchange,
  gather,
  INTERNET,
  openOrigin,
  openSession,
  openTcp,
  socksThrough,
} from "./session.js";

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe("the proxy's lifetime", () => {
  it("leaks no descriptor over 1,000 connections of every kind", { timeout: 60_000 }, async (context) => {
    if (!existsSync("/proc/self/fd"))
      return context.skip("host: this host shows no descriptors at /proc/self/fd");
    const descriptors = () => readdirSync("/proc/self/fd").length;
    const origin = await openOrigin();
    const session = await openSession(allow(["ok.test"]));
    const url = (host: string) =>
      `GET http://${host}:${origin.port}/ HTTP/1.1\r\nHost: ${host}:${origin.port}\r\nConnection: close\r\n\r\n`;
    const kinds = [
      () => exchange(session.path, url("ok.test")),
      () => exchange(session.path, url("denied.test")),
      async () => (await connectThrough(session.path, `ok.test:${origin.port}`)).socket.destroy(),
      async () => (await connectThrough(session.path, "denied.test:1")).socket.destroy(),
      async () => {
        const { socket } = await socksThrough(session.path, "ok.test", origin.port);
        socket.write(`GET / HTTP/1.0\r\nHost: ok.test:${origin.port}\r\n\r\n`);
        await gather(socket);
      },
      async () => {
        const { socket } = await socksThrough(session.path, "ok.test", origin.port);
        socket.end("\u0016\u0003");
        await gather(socket);
      },
      async () => (await socksThrough(session.path, "ok.test", 1)).socket.destroy(),
      () => exchange(session.path, "garbage\r\n\r\n"),
      async () => connect(session.path).destroy(),
    ];
    const round = async (count: number) => {
      for (let index = 0; index < count; index++) await kinds[index % kinds.length]?.();
      await until(() => session.proxy.openSockets === 0);
    };
    await round(kinds.length * 2);
    const before = descriptors();
    await round(1000);
    // The origin's ends of closed connections go a moment later than ours.
    await until(() => descriptors() <= before + 2);
    expect(session.faults).toEqual([]);
    await session.close();
    await origin.close();
  });

  it("answers 503 over its limit, and serves again when there is room", async () => {
    const session = await openSession(allow(["ok.test"]), { limits: { connections: 2 } });
    const held = [connect(session.path), connect(session.path)];
    for (const socket of held) socket.on("error", () => {});
    await until(() => session.proxy.openSockets === 2);
    expect(await exchange(session.path)).toMatch(/^HTTP\/1\.1 503[\s\S]*2 connections open/);
    expect(session.decisions).toMatchObject([{ allowed: false, protocol: "unknown" }]);
    for (const socket of held) socket.destroy();
    await until(() => session.proxy.openSockets === 0);
    expect(await exchange(session.path, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/^HTTP\/1\.1 400/);
    await session.close();
  });

  it("drops a client that never greets, and one whose handshake stops halfway", async () => {
    const server = await openTcp(() => {});
    const session = await openSession(allow(["ok.test"]), { limits: { handshakeMs: 30 } });
    expect(await exchange(session.path)).toBe("");
    expect(await exchange(session.path, Buffer.from([5, 1]))).toBe("");
    const { socket } = await connectThrough(session.path, `ok.test:${server.port}`);
    socket.write(Buffer.from([0x16, 3, 1]));
    await gather(socket);
    await until(() => session.proxy.openSockets === 0);
    await session.close();
    await server.close();
  });

  it("drops idle connections, and sooner if one side has ended", async () => {
    const server = await openTcp(() => {});
    const idle = await openSession(allow(["ok.test"]), { limits: { idleMs: 30 } });
    const first = await connectThrough(idle.path, `ok.test:${server.port}`);
    await gather(first.socket);
    const ended = await openSession(allow(["ok.test"]), { limits: { halfClosedIdleMs: 30 } });
    const second = await connectThrough(ended.path, `ok.test:${server.port}`);
    second.socket.end("last words");
    await gather(second.socket);
    await until(() => idle.proxy.openSockets + ended.proxy.openSockets === 0);
    await idle.close();
    await ended.close();
    await server.close();
  });

  it("closes everything at once, twice, and during a lookup", async () => {
    const server = await openTcp((socket) => socket.resume());
    const session = await openSession(
      { ...allow(["ok.test", "slow.test"]) },
      {
        lookup: (name) =>
          name === "slow.test"
            ? new Promise((resolve) => setTimeout(() => resolve([INTERNET]), 50))
            : Promise.resolve([INTERNET]),
      },
    );
    const open = await connectThrough(session.path, `ok.test:${server.port}`);
    const waiting = exchange(
      session.path,
      `CONNECT slow.test:${server.port} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ).catch((error: NodeJS.ErrnoException) => {
      // A cut connection may end with a reset.
      if (error.code !== "ECONNRESET") throw error;
      return "";
    });
    await until(() => session.proxy.openSockets === 3);
    const gone = gather(open.socket);
    await Promise.all([session.proxy.close(), session.proxy.close()]);
    await gone;
    expect(await waiting).toBe("");
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(session.proxy.openSockets).toBe(0);
    expect(existsSync(session.path)).toBe(false);
    expect(session.faults).toEqual([]);
    await session.close();
    await server.close();
  });

  it("cuts the connection when a decision can't be recorded", async () => {
    const origin = await openOrigin();
    const session = await openSession(allow(["ok.test"]), {
      onDecision: () => {
        throw new Error("the record is full");
      },
    });
    const { port } = origin;
    expect(
      await exchange(session.path, `GET http://ok.test:${port}/ HTTP/1.1\r\nHost: ok.test:${port}\r\n\r\n`),
    ).toBe("");
    expect(await exchange(session.path, "CONNECT denied.test:1 HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("");
    expect(origin.requests).toEqual([]);
    expect(session.faults.map(String)).toEqual(["Error: the record is full", "Error: the record is full"]);
    await until(() => session.proxy.openSockets === 0);
    await session.close();
    await origin.close();
  });

  it("works on a given server, and applies two sessions' own lists", async () => {
    const origin = await openOrigin();
    const server = createServer({ allowHalfOpen: true });
    const decisions: boolean[] = [];
    const handed = await openEgressProxy({
      listen: { server },
      policy: denyAll,
      onDecision: (decision) => decisions.push(decision.allowed),
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const request = `GET http://ok.test:${origin.port}/ HTTP/1.1\r\nHost: ok.test:${origin.port}\r\nConnection: close\r\n\r\n`;
    const socket = connect(address.port, "127.0.0.1");
    socket.write(request);
    expect((await gather(socket)).toString()).toMatch(/^HTTP\/1\.1 403/);
    const other = await openSession(allow(["ok.test"]));
    expect(await exchange(other.path, request)).toMatch(/^HTTP\/1\.1 200/);
    expect(decisions).toEqual([false]);
    await handed.close();
    expect(server.listening).toBe(false);
    await other.close();
    await origin.close();
  });

  it("is never opened if the network is on", async () => {
    const server = createServer();
    await expect(
      openEgressProxy({ listen: { server }, policy: { mode: "on", rules: [] }, onDecision: () => {} }),
    ).rejects.toThrow("never runs unrestricted");
    expect(server.listenerCount("connection")).toBe(0);
  });

  it("rejects when it can't listen", async () => {
    const session = await openSession(denyAll);
    await expect(
      openEgressProxy({ listen: { path: session.path }, policy: denyAll, onDecision: () => {} }),
    ).rejects.toMatchObject({ code: "EADDRINUSE" });
    await session.close();
  });
});
