import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addressesOfThisHost, lookupOnThisHost } from "../../src/guarded-lookup.js";

import {
  allow,
  denyAll,
  exchange,
  INTERNET,
  INTERNET_RANGE,
  itHere,
  type Origin,
  openOrigin,
  openSession,
  type ProxySession,
} from "./session.js";

const get = (url: string, host: string, extra = "") =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${extra}\r\n`;

describe("plain HTTP through the proxy", () => {
  let origin: Origin;
  let session: ProxySession;
  beforeEach(async () => {
    origin = await openOrigin();
    session = await openSession(allow(["ok.test", "*.wide.test"]), {
      names: { "private.wide.test": ["10.0.0.1"] },
    });
  });
  afterEach(async () => {
    await session.close();
    await origin.close();
    expect(session.faults).toEqual([]);
  });

  it.each([
    ["a listed name", "ok.test"],
    ["upper case", "OK.Test"],
    ["a trailing dot", "ok.test."],
    ["upper case and a trailing dot", "OK.TEST."],
    ["a name under a suffix", "a.b.wide.test"],
    ["an IDN as the URL parser writes it", "xn--bcher-kva.wide.test"],
  ])("passes %s", async (_name, host) => {
    const bytes = Buffer.from(get(`http://${host}:${origin.port}/path?q=1`, `${host}:${origin.port}`));
    const answer = await exchange(session.path, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(answer).toContain("hello");
    expect(origin.requests).toMatchObject([{ method: "GET", url: "/path?q=1" }]);
    expect(session.decisions).toMatchObject([
      { allowed: true, protocol: "http", address: INTERNET, target: { port: origin.port } },
    ]);
  });

  it.each([
    ["a name that isn't listed", "denied.test", /not on this run's list/],
    ["a listed name as user", "ok.test@denied.test", /the host has/],
    ["a listed name before a backslash", "denied.test\\ok.test", /the host has/],
    ["a percent sign", "ok.test%00.denied.test", /the host has/],
    ["the suffix itself", "wide.test", /not on this run's list/],
    ["a look-alike suffix", "awide.test", /not on this run's list/],
    ["loopback", "127.0.0.1", /in no listed range/],
    ["loopback in decimal", "2130706433", /in no listed range/],
    ["loopback in hex", "0x7f.1", /in no listed range/],
    ["loopback in octal", "0177.0.0.1", /in no listed range/],
    ["loopback in short", "127.1", /in no listed range/],
    ["loopback in IPv6", "[::1]", /in no listed range/],
    ["loopback mapped", "[::ffff:127.0.0.1]", /in no listed range/],
    ["a listed address, mapped", "[::ffff:127.0.0.2]", /in no listed range/],
    ["the metadata service", "169.254.169.254", /in no listed range/],
    ["localhost", "localhost", /not on this run's list/],
    ["a listed name with a private address", "private.wide.test", /10\.0\.0\.1 is private/],
    ["an empty host", "", /the host is empty/],
  ])("refuses %s with a 403 that says who refused", async (_name, host, reason) => {
    const answer = await exchange(
      session.path,
      get(`http://${host}:${origin.port}/`, `${host}:${origin.port}`),
    );
    if (answer.startsWith("HTTP/1.1 400")) expect(host).toMatch(/^$|\\/);
    else {
      expect(answer).toMatch(/^HTTP\/1\.1 403 /);
      expect(answer).toContain("x-ambit-boundary: refused");
      const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")));
      expect(body).toMatchObject({ error: "boundary_refused", reason: expect.stringMatching(reason) });
      expect(body.message).toContain("Ambit's boundary refused");
      expect(session.decisions).toMatchObject([
        { allowed: false, protocol: "http", reason: expect.stringMatching(reason) },
      ]);
    }
    expect(origin.requests).toEqual([]);
  });

  it("allows an address only through its range", async () => {
    const url = `http://${INTERNET}:${origin.port}/`;
    expect(await exchange(session.path, get(url, `${INTERNET}:${origin.port}`))).toMatch(/^HTTP\/1\.1 200/);
    const byNameOnly = await openSession(allow(["ok.test"], []));
    expect(await exchange(byNameOnly.path, get(url, `${INTERNET}:${origin.port}`))).toMatch(
      /^HTTP\/1\.1 403/,
    );
    await byNameOnly.close();
  });

  it("reports a failure behind it as no refusal of the boundary", async () => {
    const { port } = origin;
    await origin.close();
    const answer = await exchange(session.path, get(`http://ok.test:${port}/`, `ok.test:${port}`));
    expect(answer).toMatch(/^HTTP\/1\.1 502/);
    expect(answer).toContain("x-ambit-boundary: passed");
    expect(answer).toContain("This was not the boundary");
    expect(session.decisions).toMatchObject([{ allowed: true }]);
    origin = await openOrigin();
  });

  itHere("reports a name that doesn't resolve, and one that resolves too late", async () => {
    const failing = await openSession(allow(["ok.test"]), {
      lookup: () => Promise.reject(new Error("no such name")),
    });
    const slow = await openSession(allow(["ok.test"]), {
      lookup: () => new Promise(() => {}),
      limits: { lookupMs: 20 },
    });
    expect(await exchange(failing.path, get("http://ok.test/", "ok.test"))).toMatch(
      /^HTTP\/1\.1 502[\s\S]*not the boundary/,
    );
    expect(await exchange(slow.path, get("http://ok.test/", "ok.test"))).toMatch(
      /^HTTP\/1\.1 504[\s\S]*not the boundary/,
    );
    await failing.close();
    await slow.close();
  });

  it("doesn't let a server impersonate the boundary", async () => {
    const liar = await openOrigin({
      listener: (_request, response) =>
        response.writeHead(403, { "X-Ambit-Boundary": "refused", "Content-Length": 4 }).end("liar"),
    });
    const answer = await exchange(session.path, get(`http://ok.test:${liar.port}/`, `ok.test:${liar.port}`));
    expect(answer).toMatch(/^HTTP\/1\.1 403[\s\S]*liar$/);
    expect(answer.toLowerCase()).not.toContain("x-ambit-boundary");
    await liar.close();
  });

  it("connects to the checked address even if the name changes", async () => {
    let turn = 0;
    const rebinding = await openSession(allow(["ok.test"]), {
      lookup: async () => [turn++ % 2 === 0 ? INTERNET : "127.0.0.1"],
    });
    const decoy = await openOrigin({ address: "127.0.0.1", port: origin.port });
    const statuses: string[] = [];
    for (let count = 0; count < 4; count++) {
      statuses.push(
        (
          await exchange(rebinding.path, get(`http://ok.test:${origin.port}/`, `ok.test:${origin.port}`))
        ).slice(9, 12),
      );
    }
    expect(statuses).toEqual(["200", "403", "200", "403"]);
    expect(decoy.requests).toEqual([]);
    expect(turn).toBe(4);
    await rebinding.close();
    await decoy.close();
  });

  it("tries the next address when the first doesn't answer", async () => {
    const two = await openSession(allow(["ok.test"], ["127.0.0.0/8"]), {
      names: { "ok.test": ["127.0.0.9", INTERNET] },
    });
    expect(await exchange(two.path, get(`http://ok.test:${origin.port}/`, `ok.test:${origin.port}`))).toMatch(
      /^HTTP\/1\.1 200/,
    );
    await two.close();
  });

  it("restricts a range with a port to that port, by address and by name", async () => {
    const other = await openOrigin();
    const bound = await openSession(allow(["ok.test"], [`${INTERNET}:${origin.port}`]));
    for (const host of ["ok.test", INTERNET]) {
      const statusAt = async (port: number) =>
        (await exchange(bound.path, get(`http://${host}:${port}/`, `${host}:${port}`))).slice(9, 12);
      expect(await statusAt(origin.port)).toBe("200");
      expect(await statusAt(other.port)).toBe("403");
    }
    expect(other.requests).toEqual([]);
    await bound.close();
    await other.close();
  });

  it("names the target of a request whose Host header is another's, or isn't there", async () => {
    for (const host of ["Host: denied.test\r\n", ""])
      expect(await exchange(session.path, `GET http://ok.test:8080/ HTTP/1.1\r\n${host}\r\n`)).toMatch(
        /^HTTP\/1\.1 40/,
      );
    const target = { host: "ok.test", port: 8080 };
    expect(session.decisions).toMatchObject(session.decisions.map(() => ({ allowed: false, target })));
    expect(session.decisions.length).toBeGreaterThan(0);
  });

  it("under deny-all refuses and records everything, without lookups", async () => {
    const closed = await openSession(denyAll);
    for (const host of ["ok.test", INTERNET]) {
      expect(
        await exchange(closed.path, get(`http://${host}:${origin.port}/`, `${host}:${origin.port}`)),
      ).toMatch(/^HTTP\/1\.1 403/);
    }
    expect(closed.lookups).toEqual([]);
    expect(closed.decisions.map((decision) => decision.allowed)).toEqual([false, false]);
    await closed.close();
  });

  it.each([
    ["not a proxy request", "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400],
    ["https in absolute form", "GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", 400],
    ["not HTTP", "hello\r\n\r\n", 400],
    ["TLS to the proxy itself", Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]), 400],
    ["a name beyond ASCII", Buffer.from("GET http://ok\u3002test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n"), 400],
    ["no Host", "GET http://ok.test/ HTTP/1.1\r\n\r\n", 400],
    [
      "a huge header",
      `GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nX: ${"a".repeat(40_000)}\r\n\r\n`,
      431,
    ],
  ])("answers %s clearly", async (_name, bytes, status) => {
    expect(await exchange(session.path, bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status}`));
    expect(session.lookups).toEqual([]);
  });

  it("doesn't resolve a name that isn't listed", async () => {
    await exchange(session.path, get("http://secret.denied.test/", "secret.denied.test"));
    expect(session.lookups).toEqual([]);
    expect(INTERNET_RANGE).toContain(INTERNET);
  });

  itHere("uses the host's resolver and interfaces by default", async () => {
    const decoy = await openOrigin({ address: "127.0.0.1" });
    const defaults = { lookup: lookupOnThisHost, hostAddresses: addressesOfThisHost };
    const unlisted = await openSession(allow(["localhost"], []), defaults);
    const listed = await openSession(allow(["localhost"], ["127.0.0.0/8", "::1/128"]), defaults);
    const request = get(`http://localhost:${decoy.port}/`, `localhost:${decoy.port}`);
    expect(await exchange(unlisted.path, request)).toMatch(/^HTTP\/1\.1 403[\s\S]*is loopback/);
    expect(await exchange(listed.path, request)).toMatch(/^HTTP\/1\.1 200/);
    expect(addressesOfThisHost()).toContain("127.0.0.1");
    await unlisted.close();
    await listed.close();
    await decoy.close();
  });
});
