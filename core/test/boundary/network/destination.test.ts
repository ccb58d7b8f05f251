import { describe, expect, it } from "vitest";
import type { RangeRule } from "../../../src/boundary/index.js";
import { allowsDestination, parseNetworkRule, whyClosed } from "../../../src/boundary/network/index.js";
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
    // What whoever dials would refuse isn't allowed here either.
    ["http://127.0.0.1/", ["0.0.0.0/0"], false],
    ["http://169.254.169.254/", ["0.0.0.0/0", "169.254.0.0/16"], false],
    ["http://[::ffff:127.0.0.1]/", ["127.0.0.0/8", "::/0"], false],
    // No port is known for it.
    ["ftp://ok.test/x", ["ok.test"], false],
    ["data:text/plain,x", ["ok.test"], false],
  ])("%s under %j: %s", (url, entries, allowed) => {
    expect(allowsDestination(allowlist(...entries).rules, new URL(url))).toBe(allowed);
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
      "10.0.0.1 is private, and no listed range names it; 0.0.0.0/0 is too wide to mean it",
    ],
    ["fe80::1%eth0", ["fe80::/10"], "not an address that can be checked"],
    ["ok.test", ["0.0.0.0/0"], "not an address that can be checked"],
  ])("%s under %j: %s", (address, entries, reason) => {
    expect(whyClosed(address, ranges(...entries))).toBe(reason);
  });

  it("counts a range with a port only for that port, and for none that isn't named", () => {
    const listed = ranges("10.0.0.1:443");
    expect(whyClosed("10.0.0.1", listed, { port: 443 })).toBeUndefined();
    expect(whyClosed("10.0.0.1", listed, { port: 80 })).toBe(
      "10.0.0.1 is private, and no listed range names it",
    );
    expect(whyClosed("10.0.0.1", listed)).toBe("10.0.0.1 is private, and no listed range names it");
  });

  it("knows the host's own addresses in any spelling", () => {
    const own = ["2606:4700:0::1"];
    const reason = "2606:4700::1 is an address of the runner's own host, and no listed range names it";
    expect(whyClosed("2606:4700::1", [], { own })).toBe(reason);
    expect(whyClosed("2606:4700::1", ranges("::/0"), { own })).toBe(reason);
    expect(whyClosed("2606:4700::1", ranges("2606:4700::/32"), { own })).toBeUndefined();
    expect(whyClosed("2606:4700::2", [], { own })).toBeUndefined();
  });
});
