// needs: openssl
import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { makeCertificate } from "@ambit/fakes/certificate";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  allow,
  connectThrough,
  gather,
  INTERNET,
  itHere,
  type Origin,
  openOrigin,
  openSession,
  openTcp,
  type ProxySession,
  socksThrough,
} from "./session.js";
import { realClientHello } from "./tls.js";

const certificate = makeCertificate("ok.test", "evil.test");

describe.each(["connect", "socks5"] as const)("tunnels by %s", (protocol) => {
  let plain: Origin;
  let secure: Origin;
  let session: ProxySession;
  beforeAll(async () => {
    plain = await openOrigin();
    secure = await openOrigin({ tls: certificate });
  });
  afterAll(async () => {
    await plain.close();
    await secure.close();
  });
  beforeEach(async () => {
    plain.requests.length = 0;
    secure.requests.length = 0;
    session = await openSession(allow(["ok.test", "rebound.test", "*.wide.test"]), {
      names: { "rebound.test": ["10.0.0.1"] },
    });
  });
  afterEach(async () => {
    expect(session.faults).toEqual([]);
    await session.close();
  });

  async function open(host: string, port: number) {
    if (protocol === "socks5") {
      const { reply, socket } = await socksThrough(session.path, host, port);
      return { allowed: reply === 0, refused: reply === 2, failed: reply === 1, socket };
    }
    const { head, status, socket } = await connectThrough(session.path, `${host}:${port}`);
    const refused = status === 403 && head.includes("x-ambit-boundary: refused");
    return {
      allowed: status === 200,
      refused,
      failed: status === 502 && head.includes("x-ambit-boundary: passed"),
      socket,
    };
  }

  async function handshake(host: string, port: number, servername: string | undefined) {
    const { allowed, socket } = await open(host, port);
    expect(allowed).toBe(true);
    const tls = connectTls({
      socket,
      rejectUnauthorized: false,
      ...(servername === undefined ? {} : { servername }),
    });
    return await new Promise<TLSSocket | Error>((resolve) => {
      tls.once("secureConnect", () => resolve(tls));
      tls.once("error", resolve);
    });
  }

  it("carries TLS to a listed name, under its own name", async () => {
    const tls = await handshake("ok.test", secure.port, "ok.test");
    if (tls instanceof Error) throw tls;
    tls.write("GET / HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n");
    expect((await gather(tls)).toString()).toContain("hello");
    expect(session.decisions).toMatchObject([
      { allowed: true, protocol, address: INTERNET, target: { host: "ok.test", port: secure.port } },
    ]);
  });

  it("has a known limit: another Host inside a listed name's TLS isn't refused", async () => {
    const tls = await handshake("ok.test", secure.port, "ok.test");
    if (tls instanceof Error) throw tls;
    tls.write("GET / HTTP/1.1\r\nHost: fronted.test\r\nConnection: close\r\n\r\n");
    expect((await gather(tls)).toString()).toContain("hello");
    expect(secure.requests[0]?.headers).toContain("fronted.test");
  });

  it.each([
    ["another name", "evil.test", /names evil\.test, not ok\.test/],
    ["no name", undefined, /names no server/],
  ])("cuts a handshake that names %s, with an alert", async (_name, servername, reason) => {
    const outcome = await handshake("ok.test", secure.port, servername);
    expect(outcome).toBeInstanceOf(Error);
    expect(String(outcome)).toMatch(/alert access denied/i);
    expect(session.decisions).toMatchObject([
      { allowed: false, protocol, reason: expect.stringMatching(reason) },
    ]);
  });

  it("allows any name for an address in a listed range", async () => {
    const tls = await handshake(INTERNET, secure.port, "evil.test");
    expect(tls).not.toBeInstanceOf(Error);
  });

  it.each([
    ["ok.test", true],
    ["evil.test", false],
  ])(
    "judges a handshake for %s that comes byte by byte, and passes it on whole or not at all",
    async (servername, passes) => {
      const flight = await realClientHello(servername);
      const received: Buffer[] = [];
      const server = await openTcp((socket) => socket.on("data", (chunk: Buffer) => received.push(chunk)));
      const { socket } = await open("ok.test", server.port);
      for (const byte of flight) {
        socket.write(Buffer.from([byte]));
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (!passes) await gather(socket);
      else
        while (Buffer.concat(received).length < flight.length)
          await new Promise((resolve) => setImmediate(resolve));
      expect(Buffer.concat(received)).toEqual(passes ? flight : Buffer.alloc(0));
      expect(session.decisions).toMatchObject([{ allowed: passes }]);
      socket.destroy();
      await server.close();
    },
  );

  it.each([
    ["a name that isn't listed", "denied.test"],
    ["an address in no range", "127.0.0.1"],
    ["the same in decimal", "2130706433"],
    ["the same in hex", "0x7f.1"],
    ["the same in octal", "0177.0.0.1"],
    ["the metadata service", "169.254.169.254"],
    ["a listed name at a private address", "rebound.test"],
    ["a user in front", "ok.test@denied.test"],
    ["a slash", "denied.test/ok.test"],
    ["a percent sign", "ok.test%00.denied.test"],
  ])("refuses %s", async (_name, host) => {
    const decoy = await openOrigin({ address: "127.0.0.1" });
    const { refused, socket } = await open(host, decoy.port);
    expect(refused).toBe(true);
    expect(session.decisions).toMatchObject([{ allowed: false, protocol }]);
    expect(decoy.requests).toEqual([]);
    socket.destroy();
    await decoy.close();
  });

  it("has a control: the refused address can be reached if it is listed", async () => {
    const decoy = await openOrigin({ address: "127.0.0.1" });
    const open = await openSession(allow([], ["127.0.0.1/32"]));
    const { status, socket } = await connectThrough(open.path, `2130706433:${decoy.port}`);
    expect(status).toBe(200);
    socket.end("GET / HTTP/1.0\r\n\r\n");
    expect((await gather(socket)).toString()).toContain("hello");
    await open.close();
    await decoy.close();
  });

  it("serves unencrypted HTTP inside, and compares every Host with the name", async () => {
    const { socket } = await open("ok.test", plain.port);
    const head = (host: string, method = "GET") => `${method} /x HTTP/1.1\r\nHost: ${host}:${plain.port}\r\n`;
    socket.write(`${head("ok.test", "POST")}Content-Length: 4\r\n\r\n`);
    socket.write("body");
    socket.write(`${head("ok.test")}\r\n`);
    socket.write(`${head("fronted.test")}\r\n`);
    const answers = (await gather(socket)).toString();
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 403"]);
    expect(plain.requests.map(({ method, body }) => [method, body])).toEqual([
      ["POST", "body"],
      ["GET", ""],
    ]);
    expect(session.decisions).toMatchObject([
      { allowed: true, protocol },
      { allowed: false, protocol, reason: expect.stringContaining("fronted.test") },
    ]);
  });

  it.each([
    ["a CONNECT", "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n", 400],
    ["an absolute URL", "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 403],
  ])("is no second proxy for %s", async (_name, bytes, status) => {
    const { socket } = await open("ok.test", plain.port);
    socket.write(bytes);
    expect((await gather(socket)).toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
    expect(plain.requests).toEqual([]);
  });

  it("supports protocols in which the server speaks first, and half-closed connections", async () => {
    const server = await openTcp((socket) => {
      socket.write("220 ready\r\n");
      const received: Buffer[] = [];
      socket.on("data", (chunk: Buffer) => received.push(chunk));
      socket.on("end", () => socket.end(`heard ${Buffer.concat(received).length}`));
    });
    const { socket } = await open("ok.test", server.port);
    socket.resume();
    const [greeting] = (await once(socket, "data")) as [Buffer];
    expect(greeting.toString()).toBe("220 ready\r\n");
    socket.write("ehlo");
    socket.end(Buffer.alloc(3_000_000, 1));
    expect((await gather(socket)).toString()).toBe("heard 3000004");
    expect(session.decisions).toMatchObject([{ allowed: true }]);
    await server.close();
  });

  itHere("applies backpressure to a server whose client doesn't read", async () => {
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    const server = await openTcp((socket) => {
      const write = () => {
        while (sent < 200_000_000 && socket.write(chunk)) sent += chunk.length;
      };
      socket.on("drain", write);
      write();
    });
    const { socket } = await open("ok.test", server.port);
    socket.write("go");
    let before = -1;
    while (sent !== before) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(50_000_000);
    socket.resume();
    while (sent === before) await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    // The server goes on sending: only the client's end can have closed the proxy's side.
    while (session.proxy.openSockets > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await server.close();
  });

  it("reports a closed port as no refusal of the boundary", async () => {
    const gone = await openOrigin();
    await gone.close();
    expect(await open("ok.test", gone.port)).toMatchObject({ failed: true });
    expect(session.decisions).toMatchObject([{ allowed: true }]);
  });
});
