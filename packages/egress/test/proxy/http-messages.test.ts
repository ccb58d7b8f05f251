import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  allow,
  exchange,
  gather,
  type Origin,
  openOrigin,
  openSession,
  openTcp,
  type ProxySession,
} from "./session.js";

const get = (url: string, host: string, extra = "") =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${extra}\r\n`;

describe("HTTP messages through the proxy", () => {
  let origin: Origin;
  let session: ProxySession;
  beforeEach(async () => {
    origin = await openOrigin();
    session = await openSession(allow(["ok.test"]));
  });
  afterEach(async () => {
    await session.close();
    await origin.close();
    expect(session.faults).toEqual([]);
  });

  it.each([
    ["another Host", (port: number) => get(`http://ok.test:${port}/`, "denied.test")],
    ["another port in Host", (port: number) => get(`http://ok.test:${port}/`, "ok.test:1")],
    [
      "two Hosts",
      (port: number) => get(`http://ok.test:${port}/`, `ok.test:${port}`, "Host: denied.test\r\n"),
    ],
  ])("refuses %s", async (_name, bytes) => {
    expect(await exchange(session.path, bytes(origin.port))).toMatch(/^HTTP\/1\.1 (403|400)/);
    expect(origin.requests).toEqual([]);
  });

  it.each([
    ["both lengths", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"],
    ["a folded coding", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"],
    ["an unknown coding", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["a space before the colon", "Content-Length : 4\r\n\r\nabcd"],
    ["a bare line feed", "X: 1\nContent-Length: 4\r\n\r\nabcd"],
  ])("lets nothing be smuggled: %s", async (_name, tail) => {
    const head = `POST http://ok.test:${origin.port}/ HTTP/1.1\r\nHost: ok.test:${origin.port}\r\nConnection: close\r\n`;
    const answer = await exchange(session.path, head + tail);
    if (answer.startsWith("HTTP/1.1 200")) expect(origin.requests).toMatchObject([{ body: "" }]);
    else expect(answer).toMatch(/^HTTP\/1\.1 (400|501)/);
    expect(origin.requests.length).toBeLessThanOrEqual(1);
  });

  it("removes hop-by-hop headers, and keeps all others, including duplicates", async () => {
    const extra = [
      "Proxy-Authorization: secret",
      "Proxy-Connection: keep-alive",
      "TE: trailers",
      "Upgrade-Insecure-Requests: 1",
      "Keep-Alive: 5",
      "X-Hop: 1",
      "Cookie: a=1",
      "X-Twice: 1",
      "X-Twice: 2",
      "Accept: */*",
    ].join("\r\n");
    const url = `http://ok.test:${origin.port}/`;
    const bytes = `GET ${url} HTTP/1.1\r\nHost: ok.test:${origin.port}\r\nConnection: close, X-Hop, Content-Length, Host\r\n${extra}\r\n\r\n`;
    expect(await exchange(session.path, bytes)).toMatch(/^HTTP\/1\.1 200/);
    const headers = origin.requests[0]?.headers ?? [];
    expect(headers.filter((_value, index) => index % 2 === 0)).toEqual([
      "Host",
      "Upgrade-Insecure-Requests",
      "Cookie",
      "X-Twice",
      "X-Twice",
      "Accept",
      "Connection",
    ]);
    expect(headers.slice(0, 2)).toEqual(["Host", `ok.test:${origin.port}`]);
  });

  it("carries bodies both ways, keeps the connection, and decides on each request on it", async () => {
    const head = (host: string) =>
      `POST http://${host}:${origin.port}/ HTTP/1.1\r\nHost: ${host}:${origin.port}\r\n`;
    const answer = await exchange(
      session.path,
      `${head("ok.test")}Content-Length: 5\r\n\r\nfirst`,
      `${head("ok.test")}Transfer-Encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n`,
      `${head("denied.test")}Content-Length: 5\r\n\r\nthird`,
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 403"]);
    expect(origin.requests.map((request) => request.body)).toEqual(["first", "second"]);
    expect(session.decisions.map((decision) => decision.allowed)).toEqual([true, true, false]);
  });

  it("passes headers on before the body, both ways, and an interrupted body as interrupted", async () => {
    const slow = await openTcp((server) => {
      server.once("data", (head) => {
        expect(head.toString()).toMatch(/^POST \/ HTTP\/1\.1[\s\S]*\r\n\r\n$/);
        server.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n");
        server.once("data", (body) => server.write(body, () => server.destroy()));
      });
    });
    const host = `ok.test:${slow.port}`;
    const socket = connect(session.path);
    socket.write(`POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100\r\n\r\n`);
    const [head] = (await once(socket, "data")) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*\r\n\r\n$/);
    socket.write("half");
    const rest = await gather(socket);
    expect(["", "half"]).toContain(rest.toString());
    await slow.close();
  });
});
