import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  allow,
  exchange,
  gather,
  INTERNET,
  type Origin,
  openOrigin,
  openSession,
  type ProxySession,
  socksThrough,
} from "./session.js";

describe("SOCKS", () => {
  let origin: Origin;
  let session: ProxySession;
  beforeEach(async () => {
    origin = await openOrigin();
    session = await openSession(allow(["ok.test"]));
  });
  afterEach(async () => {
    expect(session.faults).toEqual([]);
    await session.close();
    await origin.close();
  });

  it.each([
    ["a null byte after a listed suffix", "denied.test\u0000ok.test", 2],
    ["a null byte after a listed name", "ok.test\u0000.denied.test", 2],
    ["a new line", "ok.test\r\nx", 2],
    ["a port in the name", "ok.test:1", 2],
    ["an empty name", "", 2],
    ["bytes that aren't UTF-8", "\ufffd.ok.test", 2],
    ["a percent sign", "ok%2etest", 2],
    ["a listed name in other letters", "ＯＫ.test", 0],
    ["a listed name with a dot", "OK.TEST.", 0],
  ])("%s: reply %i", async (_name, host, code) => {
    const { reply, socket } = await socksThrough(session.path, host, origin.port);
    expect(reply).toBe(code);
    socket.destroy();
    if (code === 2) expect(session.decisions).toMatchObject([{ allowed: false, protocol: "socks5" }]);
    for (const { target } of session.decisions) expect(target.host).toMatch(/^[!-~]*$/);
    expect(session.lookups).toEqual(code === 0 ? ["ok.test"] : []);
  });

  it("accepts binary addresses, by range only", async () => {
    const at = (host: number[]) => socksThrough(session.path, Buffer.from(host), origin.port);
    const listed = await at([127, 0, 0, 2]);
    expect(listed.reply).toBe(0);
    for (const host of [
      [127, 0, 0, 1],
      [169, 254, 169, 254],
      [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
      [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2],
    ]) {
      const { reply, socket } = await at(host);
      expect(reply).toBe(2);
      socket.destroy();
    }
    listed.socket.destroy();
    expect(session.decisions.map(({ target }) => target.host)).toEqual([
      INTERNET,
      "127.0.0.1",
      "169.254.169.254",
      "::1",
      "::ffff:7f00:2",
    ]);
  });

  it.each([
    ["BIND", 2],
    ["UDP ASSOCIATE", 3],
  ])("serves no %s", async (_name, command) => {
    const { reply } = await socksThrough(session.path, "ok.test", origin.port, command);
    expect(reply).toBe(7);
  });

  it("refuses other address types, and clients that require a password", async () => {
    const socket = connect(session.path);
    socket.write(Buffer.from([5, 1, 0, 5, 1, 0, 9, 0, 0]));
    expect([...(await gather(socket))].slice(0, 4)).toEqual([5, 0, 5, 8]);
    const insisting = connect(session.path);
    insisting.write(Buffer.from([5, 1, 2]));
    expect([...(await gather(insisting))]).toEqual([5, 0xff]);
  });

  it.each([
    ["SOCKS4", Buffer.from([4, 1, 0, 80, 127, 0, 0, 2, 0]), INTERNET],
    [
      "SOCKS4a",
      Buffer.from("\u0004\u0001\u0000\u0050\u0000\u0000\u0000\u0001\u0000ok.test\u0000", "latin1"),
      "0.0.0.1",
    ],
  ])("refuses %s with its own reply, and records it", async (_name, bytes, host) => {
    const answer = await exchange(session.path, bytes);
    expect(Buffer.from(answer, "latin1")).toEqual(Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0]));
    expect(session.decisions).toMatchObject([
      { allowed: false, protocol: "socks4", target: { host, port: 80 } },
    ]);
  });

  it("accepts a greeting byte by byte", async () => {
    const socket = connect(session.path);
    await once(socket, "connect");
    const request = [5, 1, 0, 5, 1, 0, 3, 7, ...Buffer.from("ok.test"), origin.port >> 8, origin.port & 255];
    for (const byte of [...request, ...Buffer.from("GET / HTTP/1.0\r\nHost: ok.test:")]) {
      socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write(`${origin.port}\r\n\r\n`);
    expect((await gather(socket)).toString("latin1")).toMatch(/hello$/);
  });

  it.each([[[5]], [[5, 3, 0]], [[5, 1, 0, 5, 1]], [[5, 1, 0, 5, 1, 0, 3, 200, 1]], [[4, 1]]])(
    "ends when the client gives up after %j",
    async (bytes) => {
      const socket = connect(session.path);
      socket.end(Buffer.from(bytes));
      await gather(socket);
      expect(session.decisions).toEqual([]);
    },
  );
});
