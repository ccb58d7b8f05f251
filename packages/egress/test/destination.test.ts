import { parseNetworkRule, type RangeRule } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { allowsDestination, whyClosed } from "../src/decide.js";
import { destinationGap, entryFor, isRange, rangeOf } from "../src/destination.js";
import { allowlist } from "./rules.js";

describe("allowsDestination", () => {
  it.each([
    ["https://ok.test/x", ["ok.test"], true],
    ["https://ok.test./x", ["ok.test"], true],
    ["https://OK.test/x", ["ok.test:443"], true],
    ["http://ok.test/x", ["ok.test:443"], false],
    ["ws://ok.test/x", ["ok.test:80"], true],
    ["wss://ok.test/x", ["ok.test:443"], true],
    ["https://ok.test:8443/x", ["ok.test:8443"], true],
    ["https://a.ok.test/x", ["*.ok.test"], true],
    ["https://ok.test/x", ["*.ok.test"], false],
    ["https://ok.test/x", ["0.0.0.0/0"], false],
    ["https://ok.test/x", [], false],
    ["http://10.1.2.3:8000/", ["10.0.0.0/8"], true],
    ["http://10.1.2.3:8000/", ["10.0.0.0/8:8000"], true],
    ["http://10.1.2.3:8000/", ["10.0.0.0/8:80"], false],
    ["http://0x7f.1:8000/", ["127.0.0.0/8"], true],
    ["http://[::1]:8000/", ["::1"], true],
    ["http://[::1]:8000/", ["127.0.0.0/8"], false],
    ["http://93.184.216.34/", ["0.0.0.0/0"], true],
    // What the connecting code would refuse isn't allowed here either.
    ["http://127.0.0.1/", ["0.0.0.0/0"], false],
    ["http://169.254.169.254/", ["0.0.0.0/0", "169.254.0.0/16"], false],
    ["http://[::ffff:127.0.0.1]/", ["127.0.0.0/8", "::/0"], false],
    // No port is known for it.
    ["ftp://ok.test/x", ["ok.test"], false],
    ["data:text/plain,x", ["ok.test"], false],
  ])("%s under %j: %s", (url, entries, allowed) => {
    expect(allowsDestination(allowlist(...entries).rules, new URL(url))).toBe(allowed);
  });

  it.each<[entry: string, url: string, allowed: boolean]>([
    ["a.example", "https://a.example/x", true],
    ["a.example", "https://A.Example.:8443/x", true],
    ["a.example", "https://b.a.example/", false],
    ["a.example", "https://a.example.evil/", false],
    ["a.example:443", "https://a.example/", true],
    ["a.example:443", "wss://a.example/", true],
    ["a.example:443", "http://a.example/", false],
    ["a.example:80", "ws://a.example/", true],
    ["*.a.example", "https://x.y.a.example/", true],
    ["*.a.example", "https://a.example/", false],
    ["*.a.example", "https://xa.example/", false],
    ["bücher.example", "https://xn--bcher-kva.example/", true],
    ["10.0.0.0/8", "http://10.1.2.3/", true],
    ["10.0.0.0/8", "http://0xa.1.2.3/", true],
    ["10.0.0.0/8", "http://167838211/", true],
    ["10.0.0.0/8", "http://11.0.0.1/", false],
    ["10.0.0.0/8", "http://ten.example/", false],
    ["10.0.0.0/8:443", "https://10.0.0.1/", true],
    ["10.0.0.0/8:443", "http://10.0.0.1/", false],
    ["2001:db8::/32", "http://[2001:db8::1]/", true],
    ["2001:db8::/32", "http://[2001:db9::1]/", false],
    ["[2001:db8::1]:443", "https://[2001:db8:0:0::1]/", true],
    ["::/0", "http://[::ffff:10.0.0.1]/", false],
    ["0.0.0.0/0", "http://[2001:db8::1]/", false],
  ])("%s and %s: %s", (entry, url, allowed) => {
    expect(allowsDestination(allowlist(entry).rules, new URL(url))).toBe(allowed);
  });
});

describe("whyClosed", () => {
  const ranges = (...entries: readonly string[]): readonly RangeRule[] =>
    entries.flatMap((entry) => {
      const parsed = parseNetworkRule(entry);
      return "rule" in parsed && parsed.rule.kind === "range" ? [parsed.rule] : [];
    });

  it.each([
    ["93.184.216.34", [], undefined],
    ["10.0.0.1", [], "10.0.0.1 is private, and no listed range names it"],
    ["10.0.0.1", ["10.0.0.0/8"], undefined],
    [
      "10.0.0.1",
      ["0.0.0.0/0"],
      "10.0.0.1 is private, and no listed range names it; 0.0.0.0/0 is too wide to count as listing it",
    ],
    ["fe80::1%eth0", ["fe80::/10"], "not an address that can be checked"],
    ["ok.test", ["0.0.0.0/0"], "not an address that can be checked"],
  ])("%s under %j: %s", (address, entries, reason) => {
    expect(whyClosed(address, ranges(...entries))).toBe(reason);
  });

  it("applies a range with a port only to that port", () => {
    const listed = ranges("10.0.0.1:443");
    expect(whyClosed("10.0.0.1", listed, { port: 443 })).toBeUndefined();
    expect(whyClosed("10.0.0.1", listed, { port: 80 })).toBe(
      "10.0.0.1 is private, and no listed range names it",
    );
    expect(whyClosed("10.0.0.1", listed)).toBe("10.0.0.1 is private, and no listed range names it");
  });

  it("recognises the host's own addresses in any spelling", () => {
    const own = ["2606:4700:0::1"];
    const reason = "2606:4700::1 is an address of the runner's own host, and no listed range names it";
    expect(whyClosed("2606:4700::1", [], { own })).toBe(reason);
    expect(whyClosed("2606:4700::1", ranges("::/0"), { own })).toBe(reason);
    expect(whyClosed("2606:4700::1", ranges("2606:4700::/32"), { own })).toBeUndefined();
    expect(whyClosed("2606:4700::2", [], { own })).toBeUndefined();
  });
});

describe("destinationGap", () => {
  const use = { connects: "it connects to", otherwise: "remove it" };
  const off = { mode: "off", rules: [] } as const;

  it.each([
    [off, "https://a.example./x", "network.deny", "a.example:443", ", and the network is off"],
    [
      allowlist("b.example"),
      "http://a.example/",
      "network.allow-host",
      "a.example:80",
      ", which is not on the list",
    ],
    [
      allowlist("b.example"),
      "http://[::1]:8/",
      "network.allow-cidr",
      "[::1]:8",
      ", which is not on the list",
    ],
  ])("%j and %s: %s", (network, url, capability, entry, why) => {
    const gap = destinationGap(network, new URL(url), use);
    expect(gap).toEqual({
      capability,
      reason: `it connects to ${entry}${why}`,
      fix: `list "${entry}" in sandboxPermission.network.allowlist, remove it`,
    });
  });

  it("is none if the proposed entry is listed, or nothing is restricted", () => {
    for (const url of ["https://a.example./x", "http://a.example:81/", "http://[::1]:8/", "http://10.1:9/"]) {
      const destination = new URL(url);
      expect(destinationGap(allowlist(entryFor(destination)), destination, use)).toBeUndefined();
      expect(destinationGap({ mode: "on", rules: [] }, destination, use)).toBeUndefined();
    }
  });
});

describe("rangeOf", () => {
  it("reads what isRange accepts, and nothing else", () => {
    expect(rangeOf("10.0.0.0/8")).toEqual({ kind: "range", cidr: "10.0.0.0/8", family: 4 });
    expect(rangeOf("::1")).toEqual({ kind: "range", cidr: "::1/128", family: 6 });
    for (const text of ["10.0.0.0/8:443", "a.example", "::ffff:10.0.0.0/104", "10.0.0.0/33", ""]) {
      expect(isRange(text)).toBe(false);
      expect(() => rangeOf(text)).toThrow(TypeError);
    }
  });
});
