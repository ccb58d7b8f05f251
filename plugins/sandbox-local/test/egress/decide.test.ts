import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import {
  decide,
  decideBeforeLookup,
  type Policy,
  parseHostRule,
  parseRange,
  readTarget,
} from "../../src/egress/index.js";

function allowlist(hosts: readonly string[], ranges: readonly string[] = []): Policy {
  const required = <Rule>(parsed: { ok: true; rule: Rule } | { ok: false }): Rule => {
    if (!parsed.ok) throw new Error("a rule of the test is wrong");
    return parsed.rule;
  };
  return {
    mode: "allowlist",
    hosts: hosts.map((text) => required(parseHostRule(text))),
    ranges: ranges.map((text) => required(parseRange(text))),
  };
}

function target(host: string, port = 443) {
  const reading = readTarget(host.includes(":") ? `[${host}]` : host, port);
  if (!reading.ok) throw new Error(reading.why);
  return reading.target;
}

const PUBLIC = "93.184.216.34";

describe("decide: names", () => {
  it.each([
    ["ok.test", 443, ["ok.test"], true],
    ["ok.test", 8443, ["ok.test"], true],
    ["ok.test", 443, ["ok.test:443"], true],
    ["ok.test", 80, ["ok.test:443"], false],
    ["other.test", 443, ["ok.test"], false],
    ["ok.test.evil.test", 443, ["ok.test"], false],
    ["notok.test", 443, ["ok.test", "*.ok.test"], false],
    ["a.ok.test", 443, ["*.ok.test"], true],
    ["a.b.ok.test", 443, ["*.ok.test"], true],
    ["ok.test", 443, ["*.ok.test"], false],
    ["a.ok.test", 443, ["ok.test"], false],
    ["a.ok.test", 80, ["*.ok.test:443"], false],
    ["ok.test", 443, [], false],
  ])("%s:%i under %j: %s", (host, port, hosts, allowed) => {
    expect(decide(target(host, port), [PUBLIC], allowlist(hosts), []).allowed).toBe(allowed);
  });

  it("never resolves what isn't listed, ranges or not", () => {
    expect(decideBeforeLookup(target("other.test"), allowlist(["ok.test"], ["0.0.0.0/0"])).allowed).toBe(
      false,
    );
  });

  it("refuses everything under deny-all", () => {
    for (const host of ["ok.test", PUBLIC]) {
      expect(decide(target(host), [PUBLIC], { mode: "deny-all" }, []).allowed).toBe(false);
    }
  });

  it("refuses a name with one bad address among good ones, and one without any", () => {
    const policy = allowlist(["ok.test"]);
    expect(decide(target("ok.test"), [PUBLIC, "10.0.0.1"], policy, [])).toMatchObject({
      allowed: false,
      reason: expect.stringContaining("10.0.0.1 is private"),
    });
    expect(decide(target("ok.test"), [], policy, []).allowed).toBe(false);
    for (const odd of ["fe80::1%eth0", "example", "127.1%0", ""]) {
      expect(decide(target("ok.test"), [odd], policy, []).allowed).toBe(false);
    }
  });

  it("refuses the host's own addresses, unless listed", () => {
    const own = [PUBLIC, "2606:4700::1"];
    expect(decide(target("ok.test"), [PUBLIC], allowlist(["ok.test"]), own).allowed).toBe(false);
    expect(decide(target("ok.test"), ["2606:4700:0::1"], allowlist(["ok.test"]), own).allowed).toBe(false);
    expect(decide(target("ok.test"), [PUBLIC], allowlist(["ok.test"], [`${PUBLIC}/32`]), own).allowed).toBe(
      true,
    );
    expect(decide(target("ok.test"), [PUBLIC], allowlist(["ok.test"], ["0.0.0.0/0"]), own).allowed).toBe(
      false,
    );
    expect(decide(target(PUBLIC), [PUBLIC], allowlist([], ["93.0.0.0/8"]), own).allowed).toBe(true);
  });
});

describe("decide: special addresses", () => {
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
    expect(decide(target("ok.test"), [address], allowlist(["ok.test"]), []).allowed).toBe(false);
    expect(decide(target("ok.test"), [address], allowlist(["ok.test"], [wide]), []).allowed).toBe(false);
    expect(decide(target(address), [address], allowlist([], [wide]), []).allowed).toBe(false);
    expect(decide(target("ok.test"), [address], allowlist(["ok.test"], [range]), []).allowed).toBe(true);
    expect(decide(target(address), [address], allowlist([], [range]), [])).toMatchObject({
      allowed: true,
      rule: range,
    });
  });

  it("refuses an IPv4-mapped address under every list", () => {
    for (const address of ["::ffff:127.0.0.1", "::ffff:93.184.216.34"]) {
      expect(
        decide(target(address), [address], allowlist([], ["::/0", "0.0.0.0/0", "127.0.0.0/8"]), []).allowed,
      ).toBe(false);
    }
  });

  it("needs two rules for a metadata service: the link-local range is too wide", () => {
    const policy = allowlist([], ["169.254.0.0/16"]);
    expect(decide(target("169.254.1.1"), ["169.254.1.1"], policy, []).allowed).toBe(true);
    expect(decide(target("169.254.169.254"), ["169.254.169.254"], policy, []).allowed).toBe(false);
  });

  it("calls special whatever ipaddr.js does, and no address of ours public that it doesn't", () => {
    const v4 = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
    const v6 = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 16, maxLength: 16 });
    fc.assert(
      fc.property(fc.oneof(v4, v6), (bytes) => {
        const address = ipaddr.fromByteArray(bytes);
        if (address.range() === "unicast") return;
        expect(decide(target("ok.test"), [address.toString()], allowlist(["ok.test"]), []).allowed).toBe(
          false,
        );
      }),
      { numRuns: 3000 },
    );
  });

  it.each([PUBLIC, "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::1"])("%s is public", (address) => {
    expect(decide(target("ok.test"), [address], allowlist(["ok.test"]), []).allowed).toBe(true);
    expect(decide(target(address), [address], allowlist(["ok.test"]), []).allowed).toBe(false);
    const all = allowlist([], ["0.0.0.0/0", "::/0"]);
    expect(decide(target(address), [address], all, []).allowed).toBe(true);
  });
});
