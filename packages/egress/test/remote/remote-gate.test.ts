import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { makeCertificate } from "@ambit/fakes/certificate";
import { afterEach, describe, expect, it, vi } from "vitest";
import { skipWithout } from "../../../../scripts/vitest/skip-without.ts";
import { openCredentialBroker } from "../../src/credentials/index.js";
import { relayTls } from "../../src/remote/messages.js";
import { allow, connectThrough, exchange, gather, INTERNET, openOrigin, openTcp } from "../proxy/session.js";
import { openRemoteSession } from "./remote-session.js";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
async function using<Opened extends { close(): Promise<void> }>(opened: Promise<Opened>): Promise<Opened> {
  const one = await opened;
  closing.push(() => one.close());
  return one;
}

/** Of this process, whose clock the test moves. The gate and the relay are processes of their own, with theirs. */
function fakeClock(toFake: ("performance" | "setInterval" | "clearInterval")[]): void {
  vi.useFakeTimers({ toFake });
  closing.push(async () => void vi.useRealTimers());
}

const absolute = (host: string, port: number, path = "/") =>
  `GET http://${host}:${port}${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`;
/** What arrives until the connection ends, for whatever reason. */
const allOf = (socket: Socket) =>
  new Promise<string>((resolve) => {
    let text = "";
    socket.on("data", (piece: Buffer) => {
      text += piece.toString("latin1");
    });
    socket.on("error", () => undefined);
    socket.once("close", () => resolve(text));
  });
const patience = { timeout: 10_000 };
/**
 * Bytes of no protocol that a gate checks. Without the beginning, one in 256 would begin as a TLS handshake does, and be
 * refused since it names no server.
 */
const randomContent = (length: number) => Buffer.concat([Buffer.from("raw "), randomBytes(length)]);

describe("a gate in a process of its own", () => {
  it("lets a listed name through, with the runner's lookup, and reports it", async () => {
    const origin = await using(openOrigin());
    const session = await using(openRemoteSession(allow(["one.test"])));
    expect(await exchange(session.path, absolute("one.test", origin.port))).toMatch(/200 OK[\s\S]*hello$/);
    expect(session.lookups).toEqual(["one.test"]);
    await expect
      .poll(() => session.decisions, patience)
      .toMatchObject([{ target: `one.test:${origin.port}`, allowed: true, reason: "listed as one.test" }]);
  });

  it("refuses an unlisted name without a lookup, and reports it", async () => {
    const session = await using(openRemoteSession(allow(["one.test"])));
    expect(await exchange(session.path, absolute("other.test", 80))).toContain("403");
    await expect
      .poll(() => session.decisions, patience)
      .toMatchObject([
        { target: "other.test:80", allowed: false, reason: "the host other.test is not on this run's list" },
      ]);
    expect(session.lookups).toEqual([]);
  });

  it("carries a large body whole in both directions, each with its own end", async () => {
    const sent = randomContent(8_000_000);
    const echo = await using(
      openTcp((socket) => {
        const pieces: Buffer[] = [];
        socket.on("data", (piece: Buffer) => pieces.push(piece));
        // Only once the client has ended.
        socket.on("end", () => socket.end(Buffer.concat(pieces)));
      }),
    );
    const session = await using(openRemoteSession(allow(["one.test"])));
    const { socket } = await connectThrough(session.path, `one.test:${echo.port}`);
    socket.end(sent);
    const hash = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
    expect(hash(await gather(socket))).toBe(hash(sent));
  });

  it("puts a credential on, with a certificate and values that the runner sends when they are asked for", async () => {
    skipWithout("openssl");
    const certificate = makeCertificate("git.test");
    const origin = await using(
      openOrigin({
        tls: certificate,
        listener: (request, response) => response.end(`got ${request.headers.authorization}`),
      }),
    );
    let value = `ghp_${"aaaabbbb".repeat(5)}`;
    const first = value;
    const broker = await openCredentialBroker(
      [
        {
          name: "TOKEN",
          value,
          as: "bearer",
          hosts: [`git.test:${origin.port}`],
          refresh: {
            url: "https://platform.test/token",
            expiresAt: new Date(Date.now() + 1_000).toISOString(),
          } as never,
        },
      ],
      {
        trusted: [certificate.cert],
        refresh: async () => {
          value = `ghp_${"ccccdddd".repeat(5)}`;
          return { ok: true, value, expiresAt: Date.now() + 3_600_000, known: { TOKEN: [value] } };
        },
      },
    );
    const session = await using(openRemoteSession(allow(["git.test"]), { credentials: broker }));
    const { socket } = await connectThrough(session.path, `git.test:${origin.port}`);
    const tls = connectTls({ socket, servername: "git.test", ca: broker.authority });
    await once(tls, "secureConnect");
    const placeholder = broker.placeholders.TOKEN ?? "";
    tls.write(
      `GET / HTTP/1.1\r\nHost: git.test:${origin.port}\r\nAuthorization: Bearer ${placeholder}\r\nConnection: close\r\n\r\n`,
    );
    const said = (await gather(tls)).toString();
    expect(origin.requests[0]?.headers).toContain(`Bearer ${value}`);
    expect(value).not.toBe(first);
    // The server repeats it, and the answer has the placeholder again.
    expect(said).toContain(`got Bearer ${placeholder}`);
    expect(said).not.toContain(value);
  });

  it("gives nothing to a client that doesn't know the secret, whatever it speaks", async () => {
    const origin = await using(openOrigin());
    const session = await using(openRemoteSession(allow(["one.test"])));
    const request = absolute("one.test", origin.port);
    const through = async (secret: Buffer) => {
      const options = { ...relayTls(secret), host: "127.0.0.1", port: session.port };
      const tls = connectTls(Object.assign(options, { allowHalfOpen: false }));
      tls.write(request);
      return await allOf(tls);
    };
    // The control: who knows it is served.
    expect(await through(session.secret)).toContain("hello");
    expect(await through(randomBytes(32))).toBe("");
    const certificates = connectTls({ host: "127.0.0.1", port: session.port, rejectUnauthorized: false });
    certificates.write(request);
    expect(await allOf(certificates)).toBe("");
    const plain = connectTcp(session.port, "127.0.0.1");
    plain.write(request);
    expect(await allOf(plain)).not.toContain("HTTP/1.1");
    expect(origin.requests).toHaveLength(1);
  });

  it("admits nothing while the session belongs to no run", async () => {
    const origin = await using(openOrigin());
    let isUnclaimed = true;
    const session = await using(openRemoteSession(allow(["one.test"]), { isUnclaimed: () => isUnclaimed }));
    const request = absolute("one.test", origin.port);
    expect(await exchange(session.path, request)).toContain("403");
    isUnclaimed = false;
    expect(await exchange(session.path, request)).toContain("hello");
  });

  it("ends open connections and everything else when the pipe to its runner ends", async () => {
    const echo = await using(openTcp((socket) => socket.pipe(socket)));
    const session = await using(openRemoteSession(allow(["one.test"])));
    const { socket } = await connectThrough(session.path, `one.test:${echo.port}`);
    socket.write(randomContent(1_000));
    socket.resume();
    await once(socket, "data");
    // As after the runner was killed.
    session.gateProcess.stdin?.destroy();
    await once(socket, "close");
    await expect.poll(() => session.gateProcess.exitCode, patience).not.toBeNull();
    expect(session.lost.map(({ message }) => message)).toMatchObject([
      expect.stringMatching(/gate can't be used/),
    ]);
    const late = connectTcp(session.port, "127.0.0.1");
    const [error] = await once(late, "error");
    expect(Object(error).code).toBe("ECONNREFUSED");
  });

  it("ends when its runner is silent, although the pipe is open", async () => {
    // The runner's own clock stands still, so that it gives up neither of them.
    fakeClock(["performance"]);
    const session = await using(openRemoteSession(allow(["one.test"]), { silenceMs: 2_000 }));
    // Pings come four times within the limit: these keep both for longer than it.
    await expect.poll(() => Math.min(...Object.values(session.pongs)), patience).toBeGreaterThan(5);
    expect([session.gateProcess.exitCode, session.relayProcess.exitCode]).toEqual([null, null]);
    session.silenceRunner();
    await expect.poll(() => session.gateProcess.exitCode, patience).not.toBeNull();
    await expect.poll(() => session.relayProcess.exitCode, patience).not.toBeNull();
  });

  it("is lost for the runner when gate or relay stand still", async () => {
    const [silenceMs, pingMs] = [60_000, 15_000];
    fakeClock(["performance", "setInterval", "clearInterval"]);
    for (const [stopped, other] of [
      ["gate", "relay"],
      ["relay", "gate"],
    ] as const) {
      const session = await using(openRemoteSession(allow(["one.test"]), { silenceMs }));
      session[`${stopped}Process`].kill("SIGSTOP");
      for (let silentMs = 0; silentMs <= silenceMs; silentMs += pingMs) {
        expect(session.lost).toEqual([]);
        const answered = session.pongs[other];
        vi.advanceTimersByTime(pingMs);
        // The other one is there in each round, and so isn't lost.
        if (silentMs < silenceMs)
          await expect.poll(() => session.pongs[other], patience).toBeGreaterThan(answered);
      }
      expect(session.lost.map(({ message }) => message)).toEqual([
        expect.stringMatching(/said nothing for 60000 ms/),
      ]);
    }
  });

  it("is lost for the runner when it is killed, or says what it can't have said", async () => {
    const session = await using(openRemoteSession(allow(["one.test"])));
    session.gateProcess.kill("SIGKILL");
    await expect.poll(() => session.lost.length, patience).toBe(1);
    const other = await using(openRemoteSession(allow(["one.test"])));
    other.relayProcess.kill("SIGKILL");
    await expect
      .poll(() => other.lost.map(({ message }) => message), patience)
      .toMatchObject([expect.stringMatching(/doesn't reach its gate/)]);
    expect(INTERNET).not.toBe("127.0.0.1");
  });
});
