import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import type { Boundary, NetworkRule } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { operatorPolicy, whyForbidden } from "@ambit/egress";
import { describe, expect, it, onTestFinished } from "vitest";
import { configSchema } from "../src/config.js";
import { Outbound, routeTo } from "../src/outbound.js";
import { probeCallback } from "../src/probe.js";
import { boundaryOf, call, executorOf, type LogLine, requestOf } from "./calls.js";
import { startPlatform } from "./platform.js";

const host = (name: string, more: { subdomains?: boolean; port?: number } = {}): NetworkRule => ({
  kind: "host",
  name,
  subdomains: false,
  ...more,
});
const range = (cidr: string, port?: number): NetworkRule => ({
  kind: "range",
  cidr,
  family: cidr.includes(":") ? 6 : 4,
  ...(port === undefined ? {} : { port }),
});
const allowlist = (...rules: NetworkRule[]): Boundary["network"] => ({ mode: "allowlist", rules });
const refused = {
  status: "failed",
  output:
    "Tool 'weather' failed: the run's boundary refuses its destination. This is not a network fault; trying again won't help.",
};
const leadsTo =
  (...addresses: string[]): Lookup =>
  async () =>
    addresses;

describe("the plan", () => {
  const off: Boundary["network"] = { mode: "off", rules: [] };
  it.each<[string, Boundary["network"], string, readonly string[]]>([
    ["no boundary", { mode: "on", rules: [] }, "http://a.example/", []],
    ["network off", off, "https://a.example/", ["network.deny a.example:443"]],
    ["a listed name", allowlist(host("a.example")), "https://a.example/x", []],
    ["a listed name with its port", allowlist(host("a.example", { port: 443 })), "https://a.example/x", []],
    ["a trailing dot", allowlist(host("a.example")), "https://a.example./x", []],
    [
      "another port",
      allowlist(host("a.example", { port: 80 })),
      "https://a.example/x",
      ["network.allow-host a.example:443"],
    ],
    ["a name below a suffix", allowlist(host("example", { subdomains: true })), "http://a.example:81/", []],
    [
      "the suffix itself",
      allowlist(host("a.example", { subdomains: true })),
      "http://a.example:81/",
      ["network.allow-host a.example:81"],
    ],
    [
      "a name that only ends alike",
      allowlist(host("a.example")),
      "http://ba.example/",
      ["network.allow-host ba.example:80"],
    ],
    ["an address in a range", allowlist(range("10.0.0.0/8")), "http://10.1.2.3:8000/", []],
    ["another spelling of it", allowlist(range("127.0.0.0/8")), "http://0x7f.1:8000/", []],
    [
      "an address off the ranges",
      allowlist(range("10.0.0.0/8")),
      "http://11.1.2.3:8000/",
      ["network.allow-cidr 11.1.2.3:8000"],
    ],
    [
      "an IPv6 address",
      allowlist(range("10.0.0.0/8")),
      "http://[::1]:8000/",
      ["network.allow-cidr [::1]:8000"],
    ],
    [
      "a name among ranges only",
      allowlist(range("0.0.0.0/0")),
      "http://a.example/",
      ["network.allow-host a.example:80"],
    ],
    [
      "a name for the loopback address",
      allowlist(host("localhost")),
      "http://localhost:8000/",
      ["network.allow-host localhost:8000"],
    ],
    [
      "that name with its ranges",
      allowlist(host("localhost"), range("127.0.0.0/8"), range("::1/128", 8000)),
      "http://localhost:8000/",
      [],
    ],
    [
      "that name with one of them",
      allowlist(host("localhost"), range("127.0.0.0/8")),
      "http://localhost:8000/",
      ["network.allow-host localhost:8000"],
    ],
    [
      "an address in a range that means the public internet",
      allowlist(range("0.0.0.0/0")),
      "http://127.0.0.1:8000/",
      ["network.allow-cidr 127.0.0.1:8000"],
    ],
    [
      "that name with a range of another port",
      allowlist(host("localhost"), range("127.0.0.1/32", 9), range("::1/128", 9)),
      "http://localhost:8000/",
      ["network.allow-host localhost:8000"],
    ],
  ])("%s", (_what, network, endpoint, expected) => {
    const request = requestOf({ endpoint });
    const [tool] = request.customTools;
    if (tool === undefined) throw new TypeError("the request has no tool");
    const gaps = executorOf({}).gaps(boundaryOf(network), { tool, request });
    expect(gaps.map(({ capability, reason }) => `${capability} ${/ to (\S+?),/.exec(reason)?.[1]}`)).toEqual(
      expected,
    );
    for (const gap of gaps) expect(gap.fix).toMatch(/^list "[^"]+".*(remove the tool|best_effort)/);
  });

  it("accepts a loopback range that the deployer allowed for callbacks", () => {
    const request = requestOf({ endpoint: "http://localhost:8000/" });
    const [tool] = request.customTools;
    if (tool === undefined) throw new TypeError("the request has no tool");
    const executor = executorOf({ config: { allowedRanges: ["127.0.0.0/8", "::1/128"] } });
    expect(executor.gaps(boundaryOf(allowlist(host("localhost"))), { tool, request })).toEqual([]);
  });
});

describe("at the time of the call", () => {
  it.each<[string, (port: number) => Boundary["network"], Boundary["enforcement"], boolean]>([
    ["a listed address", () => allowlist(range("127.0.0.1/32")), "strict", true],
    ["a listed address and port", (port) => allowlist(range("127.0.0.1/32", port)), "strict", true],
    ["another port", (port) => allowlist(range("127.0.0.1/32", port + 1)), "strict", false],
    ["an address off the list", () => allowlist(range("127.0.0.2/32")), "strict", false],
    ["the network off", () => ({ mode: "off", rules: [] }), "strict", false],
    ["what best_effort accepted", () => ({ mode: "off", rules: [] }), "best_effort", true],
  ])("%s", async (_what, network, enforcement, arrives) => {
    const platform = await startPlatform();
    const boundary = boundaryOf(network(platform.port), enforcement);
    const outcome = await call({ endpoint: `${platform.origin}/`, boundary });
    if (arrives) expect(outcome).toMatchObject({ status: "completed" });
    else expect(outcome).toEqual(refused);
    expect(platform.received).toHaveLength(arrives ? 1 : 0);
  });

  it.each<[string, readonly NetworkRule[], readonly string[], readonly string[], boolean]>([
    ["a listed name that leads to loopback", [host("platform.invalid")], ["127.0.0.1"], [], false],
    ["with that range listed", [host("platform.invalid"), range("127.0.0.0/8")], ["127.0.0.1"], [], true],
    [
      "with that range opened by the deployer",
      [host("platform.invalid")],
      ["127.0.0.1"],
      ["127.0.0.0/8"],
      true,
    ],
    ["an IPv4-mapped spelling of loopback", [host("platform.invalid")], ["::ffff:127.0.0.1"], [], false],
    [
      "one address open, one closed",
      [host("platform.invalid"), range("127.0.0.1/32")],
      ["127.0.0.1", "10.0.0.1"],
      [],
      false,
    ],
    [
      "two addresses, both open",
      [host("platform.invalid"), range("127.0.0.1/32"), range("127.0.0.2/32")],
      ["127.0.0.1", "127.0.0.2"],
      [],
      true,
    ],
    [
      "with that range listed for another port",
      [host("platform.invalid"), range("127.0.0.1/32", 9)],
      ["127.0.0.1"],
      [],
      false,
    ],
    [
      "with a range listed that means the public internet",
      [host("platform.invalid"), range("0.0.0.0/0")],
      ["127.0.0.1"],
      [],
      false,
    ],
    [
      "another name that leads to the listed range",
      [host("other.invalid"), range("127.0.0.0/8")],
      ["127.0.0.1"],
      [],
      false,
    ],
  ])("%s", async (_what, rules, addresses, allowedRanges, arrives) => {
    const platform = await startPlatform();
    const logged: LogLine[] = [];
    const outcome = await call({
      endpoint: `http://platform.invalid:${platform.port}/`,
      boundary: boundaryOf(allowlist(...rules)),
      config: { allowedRanges: [...allowedRanges] },
      lookup: leadsTo(...addresses),
      logged,
    });
    if (arrives) expect(outcome).toMatchObject({ status: "completed" });
    else expect(outcome).toEqual(refused);
    expect(platform.received).toHaveLength(arrives ? 1 : 0);
  });

  it("never reuses a connection of a run with a wider boundary", async () => {
    const platform = await startPlatform();
    const executor = executorOf({ lookup: leadsTo("127.0.0.1") });
    const trial = { endpoint: `http://platform.invalid:${platform.port}/`, executor };
    expect(await call(trial)).toMatchObject({ status: "completed" });
    expect(await call({ ...trial, boundary: boundaryOf(allowlist(host("platform.invalid"))) })).toEqual(
      refused,
    );
    expect(platform.received).toHaveLength(1);
  });

  it("is refused if the deployer forbids private hosts, whatever the request lists", async () => {
    const platform = await startPlatform();
    const boundary = boundaryOf(allowlist(host("platform.invalid"), range("127.0.0.0/8")));
    const lookup = leadsTo("127.0.0.1");
    const endpoint = `http://platform.invalid:${platform.port}/`;
    expect(await call({ endpoint, boundary, lookup, config: { privateHosts: "refuse" } })).toEqual(refused);
    expect(await call({ endpoint, boundary, lookup })).toMatchObject({ status: "completed" });
  });

  it("keeps the address out of the model's text and in the log", async () => {
    const logged: LogLine[] = [];
    const endpoint = "http://metadata.invalid/";
    expect(await call({ endpoint, lookup: leadsTo("169.254.169.254"), logged })).toEqual(refused);
    expect(logged[0]?.fields.error).toMatch(
      /^metadata\.invalid: 169\.254\.169\.254 is a cloud's metadata service/,
    );
  });

  it("reports the resolver's error for a name that can't be resolved", async () => {
    const lookup: Lookup = async () => {
      throw Object.assign(new Error("getaddrinfo ENOTFOUND x.invalid"), { code: "ENOTFOUND" });
    };
    expect(await call({ endpoint: "http://x.invalid/", lookup })).toEqual({
      status: "failed",
      output: "Tool 'weather' failed: the platform could not be reached (ENOTFOUND).",
    });
  });
});

describe("an address", () => {
  const open = operatorPolicy({ privateHosts: "allow", allowedRanges: [] });
  const closed = operatorPolicy({ privateHosts: "refuse", allowedRanges: [] });
  it.each([
    ["93.184.216.34", undefined, undefined],
    ["2606:4700::1111", undefined, undefined],
    ["10.0.0.1", undefined, "is private"],
    ["172.31.255.255", undefined, "is private"],
    ["192.168.1.1", undefined, "is private"],
    ["100.64.0.1", undefined, "is a shared address of a carrier (RFC 6598)"],
    ["127.8.8.8", undefined, "is loopback"],
    ["::1", undefined, "is loopback"],
    ["fd12:3456::1", undefined, "is private"],
    ["::ffff:10.0.0.1", "is an IPv4 address written as IPv6", "is an IPv4 address written as IPv6"],
    ["::ffff:169.254.169.254", "is an IPv4 address written as IPv6", "is an IPv4 address written as IPv6"],
    ["169.254.1.1", "is link-local", "is link-local"],
    ["fe80::1", "is link-local", "is link-local"],
    ["169.254.169.254", "is a cloud's metadata service", "is a cloud's metadata service"],
    ["fd00:ec2::254", "is a cloud's metadata service", "is a cloud's metadata service"],
    ["168.63.129.16", "is a cloud's metadata service", "is a cloud's metadata service"],
    ["100.100.100.200", "is a cloud's metadata service", "is a cloud's metadata service"],
    ["0.0.0.0", "is the unspecified address", "is the unspecified address"],
    ["::", "is the unspecified address", "is the unspecified address"],
    ["224.0.0.1", "is multicast", "is multicast"],
    ["255.255.255.255", "is broadcast", "is broadcast"],
    ["64:ff9b::7f00:1", "is NAT64", "is NAT64"],
    ["2002:7f00:1::", "is 6to4", "is 6to4"],
  ])("%s", (address, whenOpen, whenClosed) => {
    const why = (...policies: readonly (typeof open)[]) => whyForbidden(policies, address, 443);
    const saying = (reason: string | undefined) =>
      reason === undefined ? undefined : expect.stringContaining(` ${reason}`);
    expect(why(open)).toEqual(saying(whenOpen));
    expect(why(closed)).toEqual(saying(whenClosed));
    expect(why(open, closed)).toEqual(saying(whenClosed));
    // Every address at once means the public internet; one alone means itself, except in a spelling never dialled.
    const everything = operatorPolicy({ privateHosts: "refuse", allowedRanges: ["0.0.0.0/0", "::/0"] });
    expect(why(everything)).toEqual(saying(whenClosed));
    if (address.startsWith("::ffff:")) return;
    const itself = operatorPolicy({ privateHosts: "refuse", allowedRanges: [address] });
    expect(why(itself)).toBeUndefined();
  });
});

it("of this host is refused to a listed name, as in a sandbox, although it is public", () => {
  const own = "198.41.0.7";
  const { networkInterfaces } = os;
  onTestFinished(() => {
    os.networkInterfaces = networkInterfaces;
    syncBuiltinESMExports();
  });
  os.networkInterfaces = () => ({
    eth0: [{ address: own, netmask: "", family: "IPv4", mac: "", internal: false, cidr: null }],
  });
  syncBuiltinESMExports();
  const why = (address: string, ...rules: NetworkRule[]) => {
    const boundary = boundaryOf(allowlist(host("platform.example"), ...rules));
    const route = routeTo(new URL("https://platform.example/"), boundary, configSchema.parse({}));
    return route.open ? whyForbidden(route.policies, address, route.port) : route.reason;
  };
  expect(why("198.41.0.8")).toBeUndefined();
  expect(why(own)).toBe("198.41.0.7 is an address of the runner's own host, and no listed range names it");
  expect(why(own, range("198.41.0.7/32"))).toBeUndefined();
});

describe("the probe", () => {
  it("proves every claim", async () => {
    const executor = executorOf({});
    const findings = await executor.probe(AbortSignal.timeout(10_000));
    expect(findings.map(({ capability }) => capability)).toEqual(executor.claims);
    for (const finding of findings)
      expect(finding).toMatchObject({ proven: true, how: expect.stringContaining("nothing arrived") });
  });

  it("catches an executor that connects anywhere", async () => {
    const findings = await probeCallback(AbortSignal.timeout(10_000), (lookup) => {
      const outbound = new Outbound(
        configSchema.parse({ privateHosts: "allow", allowedRanges: ["0.0.0.0/0"] }),
        lookup,
      );
      const anywhere = boundaryOf({ mode: "on", rules: [] });
      return {
        send: (posting, scope) => outbound.send(posting, { ...scope, boundary: anywhere }),
        close: () => outbound.close(),
      };
    });
    expect(findings.map(({ proven }) => proven)).toEqual([false, false]);
    for (const finding of findings)
      expect(finding).toMatchObject({ reason: expect.stringContaining("arrived") });
  });

  it("catches an executor that doesn't check the addresses of a listed name", async () => {
    const findings = await probeCallback(
      AbortSignal.timeout(10_000),
      (lookup) =>
        new Outbound(configSchema.parse({ privateHosts: "allow", allowedRanges: ["127.0.0.0/8"] }), lookup),
    );
    expect(findings[0]).toMatchObject({
      proven: false,
      reason: expect.stringContaining("unlisted loopback address"),
    });
    expect(findings[1]).toMatchObject({ proven: true });
  });

  it("catches an executor that follows redirects", async () => {
    const findings = await probeCallback(AbortSignal.timeout(10_000), (lookup) => {
      const outbound = new Outbound(configSchema.parse({ privateHosts: "allow", allowedRanges: [] }), lookup);
      return {
        send: async (...sent) => {
          const answer = await outbound.send(...sent);
          if (answer.kind === "rejected" && answer.location !== undefined) await fetch(answer.location);
          return answer;
        },
        close: () => outbound.close(),
      };
    });
    for (const finding of findings)
      expect(finding).toMatchObject({ proven: false, reason: "a redirect was followed" });
  });

  it("proves nothing if its control fails", async () => {
    const findings = await probeCallback(AbortSignal.timeout(10_000), () => ({
      send: () => Promise.resolve({ kind: "answered", body: "" }),
      close: () => Promise.resolve(),
    }));
    for (const finding of findings)
      expect(finding).toMatchObject({ proven: false, reason: expect.stringContaining("the control") });
  });
});
