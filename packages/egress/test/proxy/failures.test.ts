import type { UpstreamProxy } from "@ambit/core/plugin";
import { type ConnectProxyOptions, openConnectProxy } from "@ambit/fakes/connect-proxy";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  allow,
  connectThrough,
  exchange,
  gather,
  openOrigin,
  openSession,
  openTcp,
  type ProxySession,
  socksThrough,
} from "./session.js";

type Options = Parameters<typeof openSession>[1];

async function opened(options: Options = {}, hosts = ["ok.test", "gone.test"]): Promise<ProxySession> {
  const session = await openSession(allow(hosts, ["127.0.0.2/32", "203.0.113.0/24"]), options);
  onTestFinished(() => session.close());
  return session;
}
const seen = ({ decisions }: ProxySession) =>
  decisions.map(({ target, allowed, failure, isReported }) => ({
    host: target.host,
    allowed,
    ...(failure === undefined ? {} : { failure }),
    ...(isReported === undefined ? {} : { isReported }),
  }));
const get = (session: ProxySession, url: string, host: string) =>
  exchange(session.path, `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

describe("an allowed connection that fails is an event with its reason", () => {
  it("where its name isn't resolved, and where nothing answers", async () => {
    const session = await opened();
    const { port, close } = await openTcp((socket) => socket.destroy());
    await close();
    await get(session, `http://ok.test:${port}/`, `ok.test:${port}`);
    (await connectThrough(session.path, `ok.test:${port}`)).socket.destroy();
    (await socksThrough(session.path, "ok.test", port)).socket.destroy();
    expect(seen(session)).toEqual(
      Array(3).fill({ host: "ok.test", allowed: true, failure: expect.stringContaining("ECONNREFUSED") }),
    );
    const nowhere = await opened({
      lookup: () => Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" })),
    });
    await get(nowhere, "http://gone.test/", "gone.test");
    expect(seen(nowhere)).toEqual([
      { host: "gone.test", allowed: true, failure: "gone.test can't be resolved (ENOTFOUND)" },
    ]);
  });

  it("where the server closes it before it answers, as one that was reported", async () => {
    const session = await opened();
    const reset = await openTcp((socket) => socket.once("data", () => socket.resetAndDestroy()));
    onTestFinished(() => reset.close());
    await get(session, `http://ok.test:${reset.port}/`, `ok.test:${reset.port}`);
    const { socket } = await connectThrough(session.path, `ok.test:${reset.port}`);
    socket.write("something that waits for an answer");
    await gather(socket);
    const failed = {
      host: "ok.test",
      allowed: true,
      failure: expect.stringMatching(/closed the connection/),
    };
    expect(seen(session)).toEqual([
      { host: "ok.test", allowed: true },
      { ...failed, isReported: true },
      { host: "ok.test", allowed: true },
      { ...failed, isReported: true },
    ]);
  });

  it("where an upgrade to a WebSocket gets another answer", async () => {
    const session = await opened();
    const origin = await openOrigin({ listener: (_, response) => response.writeHead(426).end() });
    onTestFinished(() => origin.close());
    const header = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    await exchange(
      session.path,
      `GET http://ok.test:${origin.port}/ HTTP/1.1\r\nHost: ok.test:${origin.port}\r\n${header}\r\n`,
    );
    expect(seen(session)).toEqual([
      { host: "ok.test", allowed: true },
      { host: "ok.test", allowed: true, failure: expect.stringContaining("with 426"), isReported: true },
    ]);
  });

  it("and one that the client ends isn't", async () => {
    const session = await opened();
    const silent = await openTcp((socket) => socket.on("end", () => socket.end()).resume());
    onTestFinished(() => silent.close());
    const { socket } = await connectThrough(session.path, `ok.test:${silent.port}`);
    socket.write("hello\n");
    socket.end();
    await gather(socket);
    expect(seen(session)).toEqual([{ host: "ok.test", allowed: true }]);
  });
});

describe("through the deployer's proxy", () => {
  async function behind(
    options: Omit<ConnectProxyOptions, "leadsTo"> = {},
    more: Partial<UpstreamProxy> = {},
  ) {
    const origin = await openOrigin({ address: "127.0.0.1" });
    onTestFinished(() => origin.close());
    const proxy = await openConnectProxy(onTestFinished, {
      credentials: "ambit:s3cret",
      ...options,
      leadsTo: (place) =>
        /^(ok\.test|203\.0\.113\.9):(80|443)$/.test(place) ? `127.0.0.1:${origin.port}` : undefined,
    });
    const authorization = `Basic ${Buffer.from("ambit:s3cret").toString("base64")}`;
    const upstreamProxy: UpstreamProxy = {
      routes: [{ destinations: "all", proxy: { url: proxy.url, authorization } }],
      resolve: "here",
      ...more,
    };
    const session = await opened(
      {
        upstreamProxy,
        names: { "ok.test": ["203.0.113.9"], "private.test": ["10.0.0.1"] },
      },
      ["ok.test", "private.test"],
    );
    return { origin, proxy, session };
  }

  it.each([
    ["here", "203.0.113.9:80"],
    ["proxy", "ok.test:80"],
  ] as const)(
    "a listed host is reached by HTTP, CONNECT and SOCKS where names are resolved %s",
    async (resolve, place) => {
      const { origin, proxy, session } = await behind({}, { resolve });
      expect(await get(session, "http://ok.test/a", "ok.test")).toContain("hello");
      const request = "GET /b HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n";
      const tunnel = await connectThrough(session.path, "ok.test:80");
      tunnel.socket.write(request);
      expect(String(await gather(tunnel.socket))).toContain("hello");
      const { reply, socket } = await socksThrough(session.path, "ok.test", 80);
      expect(reply).toBe(0);
      socket.write(request);
      expect(String(await gather(socket))).toContain("hello");
      expect(origin.requests.map(({ url }) => url)).toEqual(["/a", "/b", "/b"]);
      expect(new Set(proxy.asked)).toEqual(new Set([place]));
      expect(proxy.others).toEqual([]);
      // The credentials are for the proxy alone.
      expect(JSON.stringify(origin.requests)).not.toMatch(/proxy-authorization/i);
      expect(session.decisions.every(({ allowed, failure }) => allowed && failure === undefined)).toBe(true);
      expect(session.decisions[0]?.reason.includes("resolves its name")).toBe(resolve === "proxy");
    },
  );

  it("an unlisted one is refused before the proxy hears of it", async () => {
    const { proxy, session } = await behind();
    expect((await connectThrough(session.path, "other.test:443")).status).toBe(403);
    expect((await connectThrough(session.path, "private.test:443")).status).toBe(403);
    expect((await connectThrough(session.path, "198.51.100.7:443")).status).toBe(403);
    expect(proxy.asked).toEqual([]);
    expect(session.decisions.every(({ allowed }) => !allowed)).toBe(true);
  });

  it.each([
    [
      "doesn't know its credentials",
      { credentials: "ambit:changed" },
      502,
      /answered 407: it wants other credentials/,
    ],
    ["can't reach the host", { answer: 502 }, 502, /answered 502/],
    ["answers after too long", { answer: "none" }, 504, /did not answer in/],
    ["closes the connection", { answer: "close" }, 502, /closed the connection|can't be reached/],
  ] as const)("is an event with its reason where the proxy %s", async (_, options, status, reason) => {
    const { session } = await behind(options);
    const { head } = await connectThrough(session.path, "ok.test:443");
    expect(head).toContain(` ${status} `);
    expect(head).not.toContain("s3cret");
    expect(seen(session)).toEqual([
      { host: "ok.test", allowed: true, failure: expect.stringMatching(reason) },
    ]);
  });
});
