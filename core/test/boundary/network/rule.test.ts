import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatRule, parseNetworkRule } from "../../../src/boundary.js";

describe("an entry for names", () => {
  it.each([
    ["example.com", { subdomains: false, name: "example.com" }],
    ["EXAMPLE.com.", { subdomains: false, name: "example.com" }],
    ["*.Example.com", { subdomains: true, name: "example.com" }],
    ["example.com:443", { subdomains: false, name: "example.com", port: 443 }],
    ["*.example.com:8443", { subdomains: true, name: "example.com", port: 8443 }],
    ["bücher.example", { subdomains: false, name: "xn--bcher-kva.example" }],
    ["_srv.example", { subdomains: false, name: "_srv.example" }],
    ["localhost", { subdomains: false, name: "localhost" }],
    ["10.0.0.0.example", { subdomains: false, name: "10.0.0.0.example" }],
    ["a.com:1", { subdomains: false, name: "a.com", port: 1 }],
    ["a.com:65535", { subdomains: false, name: "a.com", port: 65_535 }],
    ["a.com:00080", { subdomains: false, name: "a.com", port: 80 }],
  ])("%s", (entry, rule) => {
    expect(parseNetworkRule(entry)).toEqual({ rule: { kind: "host", ...rule } });
  });

  it.each([
    ["", /a name, \*\.suffix, address or range/],
    ["*", /a \* only at the beginning/],
    ["*.", /the host is empty/],
    ["a.*.com", /a \* only at the beginning/],
    ["*a.com", /a \* only at the beginning/],
    ["*.*.com", /a \* only at the beginning/],
    ["*.com", /two labels/],
    ["*.127.0.0.1", /an address as 127\.0\.0\.1/],
    ["2130706433", /an address as 127\.0\.0\.1/],
    ["0x7f.1", /an address as 127\.0\.0\.1/],
    ["0177.0.0.1", /an address as 127\.0\.0\.1/],
    ["127.1", /an address as 127\.0\.0\.1/],
    ["127.0.0.1.", /an address as 127\.0\.0\.1/],
    ["１２７.0.0.1", /an address as 127\.0\.0\.1/],
    ["1.2.3.256", /not a valid name or address/],
    ["https://example.com", /without scheme/],
    ["https://example.com:443", /without scheme/],
    ["https://example.com/", /without scheme/],
    ["example.com/path", /an address and a prefix length/],
    ["[example.com]:443", /must be a host name/],
    ["[*.example.com]", /a \* only at the beginning/],
    ["a@b.com", /control character, a space, or one of/],
    ["a b.com", /control character, a space, or one of/],
    ["a\u0000.com", /control character, a space, or one of/],
    ["a.com\n", /control character, a space, or one of/],
    ["a%00.com", /control character, a space, or one of/],
    ["a..com", /must be a host name/],
    [".com", /must be a host name/],
    ["-a.com", /not a valid DNS name/],
    [`${"a".repeat(64)}.com`, /not a valid DNS name/],
    [`${"a.".repeat(127)}com`, /not a valid DNS name/],
    ["a.com:", /a name, \*\.suffix, address or range/],
    ["a.com:0", /port must be 1 to 65535/],
    ["a.com:65536", /port must be 1 to 65535/],
    ["a.com:+80", /a name, \*\.suffix, address or range/],
    ["a.com:http", /a name, \*\.suffix, address or range/],
    ["a.com:80:90", /an address and a prefix length/],
  ])("refuses %j", (entry, problem) => {
    const parsed = parseNetworkRule(entry);
    expect("problem" in parsed ? parsed.problem : "accepted").toMatch(problem);
  });
});

describe("an entry for addresses", () => {
  it.each([
    ["10.0.0.0/8", { cidr: "10.0.0.0/8", family: 4 }],
    ["203.0.113.7", { cidr: "203.0.113.7/32", family: 4 }],
    ["127.0.0.1", { cidr: "127.0.0.1/32", family: 4 }],
    ["0.0.0.0/0", { cidr: "0.0.0.0/0", family: 4 }],
    ["2001:db8::/32", { cidr: "2001:db8::/32", family: 6 }],
    ["::1", { cidr: "::1/128", family: 6 }],
    ["[::1]", { cidr: "::1/128", family: 6 }],
    ["::/0", { cidr: "::/0", family: 6 }],
    // Bits beyond the prefix mean nothing: the range comes out as it is matched.
    ["10.0.0.1/8", { cidr: "10.0.0.0/8", family: 4 }],
    ["172.31.255.255/12", { cidr: "172.16.0.0/12", family: 4 }],
    ["2001:db8::1/32", { cidr: "2001:db8::/32", family: 6 }],
    ["2001:DB8:0:0::/32", { cidr: "2001:db8::/32", family: 6 }],
    ["10.0.0.0/8:443", { cidr: "10.0.0.0/8", family: 4, port: 443 }],
    ["203.0.113.7:80", { cidr: "203.0.113.7/32", family: 4, port: 80 }],
    ["[::1]:8080", { cidr: "::1/128", family: 6, port: 8080 }],
    ["[2001:db8::/32]:443", { cidr: "2001:db8::/32", family: 6, port: 443 }],
    ["[2001:db8::]/32:443", { cidr: "2001:db8::/32", family: 6, port: 443 }],
    // Without brackets the last part is the address's.
    ["2001:db8::1:443", { cidr: "2001:db8::1:443/128", family: 6 }],
  ])("%s", (entry, rule) => {
    expect(parseNetworkRule(entry)).toEqual({ rule: { kind: "range", ...rule } });
  });

  it.each([
    ["10.0.0.0/33", /at most 32/],
    ["::/129", /at most 128/],
    ["010.0.0.0/8", /an address and a prefix length/],
    ["0x0a.0.0.0/8", /an address and a prefix length/],
    ["10/8", /an address and a prefix length/],
    ["10.0.0.0/", /an address and a prefix length/],
    ["10.0.0.0/-1", /an address and a prefix length/],
    ["10.0.0.0/8/8", /an address and a prefix length/],
    ["::ffff:10.0.0.0/104", /IPv4 range/],
    ["::ffff:10.0.0.1", /IPv4 range/],
    ["[::ffff:10.0.0.1]:80", /IPv4 range/],
    ["::ffff:10.0.0.0/0", /IPv4 range/],
    ["fe80::1%eth0", /an address and a prefix length/],
    [" 10.0.0.0/8", /an address and a prefix length/],
    ["[10.0.0.1]:80", /must be a host name/],
    ["[10.0.0.0/8]:80", /an address and a prefix length/],
    ["[::1/128]/32", /an address and a prefix length/],
    ["[::1", /an address and a prefix length/],
    ["[]", /must be a host name/],
    ["[::1]:0", /port must be 1 to 65535/],
    ["10.0.0.0/8:65536", /port must be 1 to 65535/],
  ])("refuses %j", (entry, problem) => {
    const parsed = parseNetworkRule(entry);
    expect("problem" in parsed ? parsed.problem : "accepted").toMatch(problem);
  });
});

describe("a rule", () => {
  it("is formatted as it is parsed", () => {
    const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined });
    const four = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
    const six = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }));
    const range = fc.oneof(four, six).map(([address, prefix]) => `${address}/${prefix}`);
    const name = fc.tuple(fc.constantFrom("", "*."), fc.domain()).map((parts) => parts.join(""));
    const entry = fc.tuple(fc.oneof(range, name), port).map(([text, wanted]) => {
      if (wanted === undefined) return text;
      return text.includes(":") ? `[${text}]:${wanted}` : `${text}:${wanted}`;
    });
    fc.assert(
      fc.property(entry, (text) => {
        const parsed = parseNetworkRule(text);
        // IPv4-mapped ranges are refused, and so have no canonical form.
        fc.pre("rule" in parsed);
        if ("rule" in parsed) expect(parseNetworkRule(formatRule(parsed.rule))).toEqual(parsed);
      }),
      { numRuns: 1000 },
    );
  });
});
