import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { type NetworkRule, parseNetworkRule, type UpstreamProxy } from "@ambit/core/plugin";
import { type ConnectProxyOptions, openConnectProxy } from "@ambit/fakes/connect-proxy";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { exchange, HttpClient } from "../../src/client/index.js";
import { isResolvedByProxy, proxyFor } from "../../src/client/upstream-proxy.js";
import { AddressRefused, whyClosed } from "../../src/index.js";
import { readAuthority } from "../../src/target.js";

const rule = (entry: string): NetworkRule => {
  const parsed = parseNetworkRule(entry);
  if (!("rule" in parsed)) throw new TypeError(parsed.problem);
  return parsed.rule;
};
const through = (url: string, more: Partial<UpstreamProxy> = {}, authorization?: string): UpstreamProxy => ({
  routes: [{ destinations: "all", proxy: { url, authorization } }],
  resolve: "here",
  ...more,
});
const basic = `Basic ${Buffer.from("ambit:s3cret").toString("base64")}`;

describe("the proxy on the way to a destination", () => {
  const upstream: UpstreamProxy = {
    routes: [
      { destinations: ["intranet.example", "*.corp.example", "10.0.0.0/8"].map(rule), proxy: "direct" },
      { destinations: [rule("*.partner.example:443")], proxy: { url: "http://other.example:8080" } },
      { destinations: "all", proxy: { url: "http://proxy.example:3128" } },
    ],
    resolve: "proxy",
  };
  it.each([
    ["example.com:443", [], "http://proxy.example:3128"],
    ["example.com:443", ["93.184.216.34"], "http://proxy.example:3128"],
    ["example.com:443", ["10.1.2.3"], undefined],
    ["intranet.example:80", [], undefined],
    ["git.corp.example:443", [], undefined],
    ["api.partner.example:443", [], "http://other.example:8080"],
    ["api.partner.example:80", [], "http://proxy.example:3128"],
    ["10.9.9.9:443", [], undefined],
    ["203.0.113.9:443", [], "http://proxy.example:3128"],
    // Loopback never.
    ["127.0.0.1:443", [], undefined],
    ["[::1]:443", [], undefined],
    ["localhost:443", [], undefined],
    ["app.localhost:443", [], undefined],
    ["example.com:443", ["127.0.0.1", "::1"], undefined],
    ["example.com:443", ["127.0.0.1", "93.184.216.34"], "http://proxy.example:3128"],
  ])("of %s at %j is %s", (authority, addresses, url) => {
    const reading = readAuthority(authority);
    if (!reading.ok) return expect.unreachable(reading.why);
    const proxy = proxyFor(reading.target, addresses, upstream);
    expect(proxy?.url).toBe(url);
    if (addresses.length === 0 && reading.target.kind === "name")
      expect(isResolvedByProxy(reading.target, upstream)).toBe(url !== undefined);
    expect(isResolvedByProxy(reading.target, { ...upstream, resolve: "here" })).toBe(false);
  });
});

/** A site that only the proxy can reach: the name's address is one of a documentation range. */
async function site(options: Omit<ConnectProxyOptions, "leadsTo"> = {}) {
  const requests: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    requests.push(url);
    response.end("here");
  });
  const port = await listening(server, onTestFinished);
  const proxy = await openConnectProxy(onTestFinished, {
    ...options,
    leadsTo: (place) => (/^(site\.example|203\.0\.113\.9):80$/.test(place) ? `127.0.0.1:${port}` : undefined),
  });
  return { proxy, requests };
}
const lookup = async (name: string) =>
  name === "private.example" ? ["10.0.0.1"] : name === "empty.example" ? [] : ["203.0.113.9"];
// As for a run: public addresses, and the documentation range of this test.
const whyNot = (address: string) =>
  whyClosed(address, [{ kind: "range", cidr: "203.0.113.0/24", family: 4 }]);

describe.each(["one request", "kept connections"] as const)("a client through a proxy: %s", (client) => {
  const get = async (url: string, upstreamProxy: UpstreamProxy) => {
    const guard = { whyClosed: whyNot, lookup, upstreamProxy };
    if (client === "one request") {
      const options = { maxBytes: 1_000, signal: AbortSignal.timeout(30_000) };
      return (await exchange({ url: new URL(url), headers: {} }, guard, options)).body;
    }
    const kept = new HttpClient(guard);
    onTestFinished(() => kept.close());
    const signal = AbortSignal.timeout(30_000);
    return await text(await kept.send({ url: new URL(url), headers: {} }, { signal }));
  };

  it("asks for the address that it judged, or for the name where only the proxy resolves", async () => {
    const { proxy, requests } = await site({ credentials: "ambit:s3cret" });
    expect(await get("http://site.example/a", through(proxy.url, {}, basic))).toBe("here");
    expect(proxy.asked).toEqual(["203.0.113.9:80"]);
    expect(await get("http://site.example/b", through(proxy.url, { resolve: "proxy" }, basic))).toBe("here");
    expect(proxy.asked).toEqual(["203.0.113.9:80", "site.example:80"]);
    expect(requests).toEqual(["/a", "/b"]);
    expect(proxy.others).toEqual([]);
  });

  it("refuses what its policy refuses before the proxy hears of it", async () => {
    const { proxy } = await site();
    for (const url of [
      "http://private.example/",
      "http://10.0.0.1/",
      "http://[::ffff:10.0.0.1]/",
      "http://empty.example/",
    ])
      await expect(get(url, through(proxy.url))).rejects.toThrow(AddressRefused);
    expect(proxy.asked).toEqual([]);
  });

  it.each([
    ["wants credentials", { credentials: "ambit:other" }, /answered 407.*egress\.proxy/],
    ["refuses", { answer: 403 }, /answered 403: it refuses the destination/],
    ["can't reach the destination", { answer: 502 }, /answered 502: it can't reach/],
    ["closes the connection", { answer: "close" }, /closed the connection|ECONNRESET/],
  ] as const)("names its reason where the proxy %s, without credentials", async (_, options, words) => {
    const { proxy } = await site(options);
    const failure = await get("http://site.example/", through(proxy.url, {}, basic)).then(
      () => expect.unreachable(),
      (error: unknown) => error,
    );
    expect(String(failure)).toMatch(words);
    expect(JSON.stringify(failure) + String(failure)).not.toContain(basic.slice(6));
  });

  it("reaches loopback without it", async () => {
    const { proxy } = await site();
    const port = await listening(
      createServer((_, response) => response.end("near")),
      onTestFinished,
    );
    const guard = { upstreamProxy: through(proxy.url) };
    const options = { maxBytes: 100, signal: AbortSignal.timeout(30_000) };
    const near = await exchange({ url: new URL(`http://127.0.0.1:${port}/`), headers: {} }, guard, options);
    expect(near.body).toBe("near");
    expect(proxy.asked).toEqual([]);
  });
});
