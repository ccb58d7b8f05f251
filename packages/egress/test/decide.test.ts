import type { NetworkBoundary } from "@ambit/core/plugin";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { decideBeforeLookup, decideConnection, matches } from "../src/decide.js";
import type { Target } from "../src/target.js";
import { allowlist, target } from "./rules.js";

const PUBLIC = "93.184.216.34";
const off: NetworkBoundary = { mode: "off", rules: [] };

function isAllowed(
  to: Target,
  addresses: readonly string[],
  network: NetworkBoundary,
  own: readonly string[] = [],
): boolean {
  return decideConnection(to, addresses, network, own).allowed;
}

describe("names", () => {
  it.each([
    ["ok.test", 443, ["ok.test"], true],
    ["ok.test", 8443, ["ok.test"], true],
    ["ok.test", 443, ["ok.test:443"], true],
    ["ok.test", 80, ["ok.test:443"], false],
    ["ok.test", 80, ["ok.test:443", "ok.test:80"], true],
    ["other.test", 443, ["ok.test"], false],
    ["ok.test.evil.test", 443, ["ok.test"], false],
    ["notok.test", 443, ["ok.test", "*.ok.test"], false],
    ["a.ok.test", 443, ["*.ok.test"], true],
    ["a.b.ok.test", 443, ["*.ok.test"], true],
    ["ok.test", 443, ["*.ok.test"], false],
    ["a.ok.test", 443, ["ok.test"], false],
    ["a.ok.test", 80, ["*.ok.test:443"], false],
    ["ok.test", 443, ["0.0.0.0/0", "::/0"], false],
    ["ok.test", 443, [], false],
  ])("%s:%i under %j: %s", (host, port, entries, allowed) => {
    const network = allowlist(...entries);
    const to = target(host, port);
    expect(isAllowed(to, [PUBLIC], network)).toBe(allowed);
    expect(decideBeforeLookup(to, network).allowed).toBe(allowed);
    expect(network.rules.some((rule) => matches(rule, to))).toBe(allowed);
  });

  it("never resolves an unlisted name, with or without ranges", () => {
    expect(decideBeforeLookup(target("other.test"), allowlist("ok.test", "0.0.0.0/0")).allowed).toBe(false);
  });

  it("names the rule, and the port for which the name is listed", () => {
    expect(decideConnection(target("a.ok.test"), [PUBLIC], allowlist("*.OK.test:443"), [])).toEqual({
      allowed: true,
      reason: "listed as *.ok.test:443",
      rule: "*.ok.test:443",
    });
    expect(decideBeforeLookup(target("ok.test", 80), allowlist("ok.test:443"))).toEqual({
      allowed: false,
      reason: "ok.test is listed as ok.test:443, not for port 80",
    });
  });

  it("refuses a name with one forbidden address, and one without addresses", () => {
    const network = allowlist("ok.test");
    for (const addresses of [
      [PUBLIC, "10.0.0.1"],
      ["10.0.0.1", PUBLIC],
    ]) {
      expect(decideConnection(target("ok.test"), addresses, network, [])).toMatchObject({
        allowed: false,
        reason: expect.stringContaining("10.0.0.1 is private"),
      });
    }
    expect(isAllowed(target("ok.test"), [], network)).toBe(false);
  });

  it.each(["fe80::1%eth0", "example", "127.1%0", "", "010.0.0.1", "0x5d.1", "1572395042", "93.184.216.34 "])(
    "refuses a name that leads to %j, which parsers read differently or not at all",
    (odd) => {
      expect(isAllowed(target("ok.test"), [odd], allowlist("ok.test", "0.0.0.0/0"))).toBe(false);
    },
  );
});

describe("the mode", () => {
  it.each<[string, NetworkBoundary]>([
    ["off", off],
    ["off, whatever it lists", { ...allowlist("ok.test", "0.0.0.0/0"), mode: "off" }],
    ["an empty list", allowlist()],
  ])("%s refuses everything", (_what, network) => {
    for (const host of ["ok.test", PUBLIC, "127.0.0.1", "::1"]) {
      expect(decideBeforeLookup(target(host), network).allowed).toBe(false);
      expect(isAllowed(target(host), [PUBLIC], network)).toBe(false);
    }
  });

  it("on restricts nothing", () => {
    const on: NetworkBoundary = { mode: "on", rules: [] };
    for (const host of ["ok.test", PUBLIC, "127.0.0.1", "::1"]) {
      expect(decideBeforeLookup(target(host), on).allowed).toBe(true);
      expect(isAllowed(target(host), ["127.0.0.1"], on)).toBe(true);
    }
  });
});

describe("the host's own addresses", () => {
  const own = [PUBLIC, "2606:4700:0::1", "fe80::1%eth0"];
  it.each([
    ["ok.test", PUBLIC, ["ok.test"], false],
    ["ok.test", "2606:4700::1", ["ok.test"], false],
    ["ok.test", "2606:4700:0:0::1", ["ok.test"], false],
    ["ok.test", PUBLIC, ["ok.test", `${PUBLIC}/32`], true],
    ["ok.test", PUBLIC, ["ok.test", `${PUBLIC}:443`], true],
    ["ok.test", PUBLIC, ["ok.test", `${PUBLIC}:80`], false],
    ["ok.test", PUBLIC, ["ok.test", "0.0.0.0/0"], false],
    ["ok.test", "8.8.8.8", ["ok.test"], true],
    [PUBLIC, PUBLIC, ["93.0.0.0/8"], true],
    [PUBLIC, PUBLIC, ["0.0.0.0/0"], false],
  ])("%s, which is %s, under %j: %s", (host, address, entries, allowed) => {
    expect(isAllowed(target(host), [address], allowlist(...entries), own)).toBe(allowed);
  });
});

describe("a range with a port", () => {
  it.each([
    ["10.0.0.1", 443, ["10.0.0.0/8:443"], true],
    ["10.0.0.1", 80, ["10.0.0.0/8:443"], false],
    ["10.0.0.1", 80, ["10.0.0.0/8:443", "10.0.0.1:80"], true],
    ["::1", 443, ["[::1]:443"], true],
    ["::1", 80, ["[::1]:443"], false],
    [PUBLIC, 443, ["0.0.0.0/0:443"], true],
    [PUBLIC, 80, ["0.0.0.0/0:443"], false],
    // A wide range opens the port, and a narrow one the address: only a rule that does both counts.
    ["10.0.0.1", 80, ["0.0.0.0/0", "10.0.0.0/8:443"], false],
  ])("%s:%i under %j: %s, by address", (host, port, entries, allowed) => {
    expect(isAllowed(target(host, port), [host], allowlist(...entries))).toBe(allowed);
  });

  it.each([
    [443, ["ok.test", "10.0.0.0/8:443"], true],
    [80, ["ok.test", "10.0.0.0/8:443"], false],
    [443, ["ok.test:443", "10.0.0.0/8"], true],
    [443, ["ok.test:80", "10.0.0.0/8:443"], false],
  ])("a name that leads to 10.0.0.1 on port %i under %j: %s", (port, entries, allowed) => {
    expect(isAllowed(target("ok.test", port), ["10.0.0.1"], allowlist(...entries))).toBe(allowed);
  });

  it("is named in the refusal of another port", () => {
    expect(decideBeforeLookup(target("10.0.0.1", 80), allowlist("10.0.0.0/8:443")).reason).toBe(
      "10.0.0.1 is listed as 10.0.0.0/8:443, not for port 80",
    );
  });
});

describe("special addresses", () => {
  const special = [
    ["127.0.0.1", "127.0.0.0/8"],
    ["127.255.255.254", "127.255.255.254/32"],
    ["10.1.2.3", "10.0.0.0/8"],
    ["172.31.0.1", "172.16.0.0/12"],
    ["192.168.1.1", "192.168.1.0/24"],
    ["100.64.0.1", "100.64.0.0/10"],
    ["169.254.1.1", "169.254.0.0/16"],
    ["169.254.169.254", "169.254.169.254/32"],
    ["168.63.129.16", "168.63.129.16/32"],
    ["100.100.100.200", "100.100.100.200/32"],
    ["0.0.0.0", "0.0.0.0/8"],
    ["0.1.2.3", "0.0.0.0/8"],
    ["255.255.255.255", "255.255.255.255/32"],
    ["224.0.0.1", "224.0.0.0/4"],
    ["240.0.0.1", "240.0.0.0/4"],
    ["198.18.0.1", "198.18.0.0/15"],
    ["192.0.2.1", "192.0.2.0/24"],
    ["::1", "::1/128"],
    ["::", "::/128"],
    ["::7f00:1", "::/96"],
    ["fc00::1", "fc00::/7"],
    ["fd00:ec2::254", "fd00:ec2::254/128"],
    ["fe80::1", "fe80::/10"],
    ["fec0::1", "fec0::/10"],
    ["ff02::1", "ff00::/8"],
    ["64:ff9b::7f00:1", "64:ff9b::/96"],
    ["64:ff9b:1::1", "64:ff9b:1::/48"],
    ["2002:7f00:1::", "2002::/16"],
    ["2001::1", "2001::/32"],
    ["2001:db8::1", "2001:db8::/32"],
    ["4000::1", "4000::/16"],
  ] as const;

  it.each(special)("%s is refused, and allowed with %s listed", (address, range) => {
    const wide = address.includes(":") ? "::/0" : "0.0.0.0/0";
    expect(isAllowed(target("ok.test"), [address], allowlist("ok.test"))).toBe(false);
    expect(isAllowed(target("ok.test"), [address], allowlist("ok.test", wide))).toBe(false);
    expect(isAllowed(target(address), [address], allowlist(wide))).toBe(false);
    expect(isAllowed(target("ok.test"), [address], allowlist("ok.test", range))).toBe(true);
    expect(decideConnection(target(address), [address], allowlist(range), [])).toMatchObject({
      allowed: true,
      rule: range,
    });
  });

  it("refuses an IPv4-mapped address under every list", () => {
    for (const address of ["::ffff:127.0.0.1", "::ffff:93.184.216.34"]) {
      const network = allowlist("ok.test", "::/0", "::/80", "0.0.0.0/0", "127.0.0.0/8");
      expect(isAllowed(target(address), [address], network)).toBe(false);
      expect(isAllowed(target("ok.test"), [address], network)).toBe(false);
    }
  });

  it("needs two rules for a metadata service: the link-local range is too wide", () => {
    const network = allowlist("169.254.0.0/16");
    expect(isAllowed(target("169.254.1.1"), ["169.254.1.1"], network)).toBe(true);
    expect(decideConnection(target("169.254.169.254"), ["169.254.169.254"], network, [])).toEqual({
      allowed: false,
      reason:
        "169.254.169.254 is a cloud's metadata service, and no listed range names it; 169.254.0.0/16 is too wide to count as listing it",
    });
  });

  it("classifies as special everything that ipaddr.js does", () => {
    const v4 = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
    const v6 = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 16, maxLength: 16 });
    fc.assert(
      fc.property(fc.oneof(v4, v6), (bytes) => {
        const address = ipaddr.fromByteArray(bytes);
        if (address.range() === "unicast") return;
        expect(isAllowed(target("ok.test"), [address.toString()], allowlist("ok.test"))).toBe(false);
      }),
      { numRuns: 3000 },
    );
  });

  it.each([PUBLIC, "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::1"])("%s is public", (address) => {
    expect(isAllowed(target("ok.test"), [address], allowlist("ok.test"))).toBe(true);
    expect(isAllowed(target(address), [address], allowlist("ok.test"))).toBe(false);
    expect(isAllowed(target(address), [address], allowlist("0.0.0.0/0", "::/0"))).toBe(true);
  });
});
