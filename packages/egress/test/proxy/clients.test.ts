import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { promisify } from "node:util";
import { makeCertificate } from "@ambit/fakes/certificate";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  allow,
  connectThrough,
  gather,
  type Origin,
  openOrigin,
  openSession,
  openTcp,
  type ProxySession,
} from "./session.js";

const CURL = "/usr/bin/curl";

describe("curl", () => {
  if (!existsSync(CURL)) {
    it("isn't tried", (context) => context.skip(`host: no ${CURL}: apt-get install curl`));
    return;
  }
  let plain: Origin;
  let secure: Origin;
  let session: ProxySession;
  let relay: Awaited<ReturnType<typeof openTcp>>;
  beforeAll(async () => {
    plain = await openOrigin();
    secure = await openOrigin({ tls: makeCertificate("ok.test") });
  });
  afterAll(async () => {
    await plain.close();
    await secure.close();
  });
  beforeEach(async () => {
    session = await openSession(allow(["ok.test"]));
    relay = await openTcp((socket) => {
      const inner = connect(session.path);
      inner.on("error", () => socket.destroy());
      socket.pipe(inner).pipe(socket);
    }, "127.0.0.1");
  });
  afterEach(async () => {
    await relay.close();
    await session.close();
  });

  const curl = async (...args: string[]) => {
    try {
      return (
        await promisify(execFile)(CURL, [
          "-sSk",
          "--noproxy",
          "",
          "-w",
          "\n%{http_code} %{http_connect}",
          ...args,
        ])
      ).stdout;
    } catch (error) {
      return `failed: ${error instanceof Error && "stderr" in error ? error.stderr : error}`;
    }
  };

  it.each([
    ["http", "http", "ok.test", /^hello\n200 000$/],
    ["http", "http", "denied.test", /boundary refused[\s\S]*403 000$/],
    ["https", "http", "ok.test", /^hello\n200 200$/],
    ["https", "http", "denied.test", /^failed: .*403/],
    ["http", "socks5h", "ok.test", /^hello\n200 000$/],
    ["https", "socks5h", "ok.test", /^hello\n200 000$/],
    ["https", "socks5h", "denied.test", /^failed: .*\(2\)/],
    ["http", "socks4a", "ok.test", /^failed: .*(rejected|91)/],
  ])("%s through %s to %s", async (scheme, proxy, host, outcome) => {
    const port = scheme === "http" ? plain.port : secure.port;
    expect(
      await curl("--proxy", `${proxy}://127.0.0.1:${relay.port}`, `${scheme}://${host}:${port}/`),
    ).toMatch(outcome);
    expect(session.decisions).toMatchObject([{ allowed: host === "ok.test" && proxy !== "socks4a" }]);
    expect(session.faults).toEqual([]);
  });
});

describe("unencrypted WebSocket", () => {
  const key = "dGhlIHNhbXBsZSBub25jZQ==";
  const request = (url: string, host: string, upgrade = "websocket") =>
    `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\nSec-WebSocket-Key: ${key}\r\n\r\n`;
  let server: Awaited<ReturnType<typeof openTcp>>;
  let session: ProxySession;
  beforeEach(async () => {
    session = await openSession(allow(["ok.test"]));
    server = await openTcp((socket) => {
      socket.once("data", () => {
        const accept = createHash("sha1")
          .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest("base64");
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nfirst`,
        );
        socket.once("data", (chunk) => socket.end(`echo ${chunk.toString()}`));
      });
    });
  });
  afterEach(async () => {
    expect(session.faults).toEqual([]);
    await session.close();
    await server.close();
  });

  it.each(["absolute form", "a tunnel"])("passes in %s", async (form) => {
    const host = `ok.test:${server.port}`;
    const socket =
      form === "a tunnel" ? (await connectThrough(session.path, host)).socket : connect(session.path);
    socket.write(request(form === "a tunnel" ? "/" : `http://${host}/`, host));
    socket.once("data", () => socket.write("ping"));
    const answer = (await gather(socket)).toString();
    expect(answer).toMatch(
      /^HTTP\/1\.1 101 [\s\S]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=[\s\S]*\r\n\r\nfirstecho ping$/,
    );
    expect(session.decisions).toMatchObject([{ allowed: true }]);
  });

  it("allows no other protocol, and no other host", async () => {
    const host = `ok.test:${server.port}`;
    const other = connect(session.path);
    other.write(request(`http://${host}/`, host, "h2c"));
    // From Node 24.9 on it is passed without the upgrade, which this server then makes all the same.
    expect((await gather(other)).toString()).toMatch(/^HTTP\/1\.1 50[12]/);
    const denied = connect(session.path);
    denied.write(request("http://denied.test/", "denied.test"));
    expect((await gather(denied)).toString()).toMatch(/^HTTP\/1\.1 403/);
  });
});
