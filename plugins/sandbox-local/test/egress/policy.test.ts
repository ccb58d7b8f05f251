import { describe, expect, it } from "vitest";
import { parseHostRule, parseRange } from "../../src/egress/index.js";

describe("parseHostRule", () => {
  it.each([
    ["example.com", { match: "exact", name: "example.com" }],
    ["EXAMPLE.com.", { match: "exact", name: "example.com" }],
    ["*.Example.com", { match: "suffix", name: "example.com" }],
    ["example.com:443", { match: "exact", name: "example.com", port: 443 }],
    ["*.example.com:8443", { match: "suffix", name: "example.com", port: 8443 }],
    ["bücher.example", { match: "exact", name: "xn--bcher-kva.example" }],
    ["_srv.example", { match: "exact", name: "_srv.example" }],
    ["localhost", { match: "exact", name: "localhost" }],
  ])("%s", (text, rule) => {
    expect(parseHostRule(text)).toEqual({ ok: true, rule: { text, ...rule } });
  });

  it.each([
    ["", "host-empty"],
    ["*", "host-wildcard"],
    ["*.", "host-invalid"],
    ["a.*.com", "host-wildcard"],
    ["*a.com", "host-wildcard"],
    ["*.*.com", "host-wildcard"],
    ["127.0.0.1", "host-is-address"],
    ["*.127.0.0.1", "host-is-address"],
    ["2130706433", "host-is-address"],
    ["0x7f.1", "host-is-address"],
    ["[::1]", "host-is-address"],
    ["::1", "host-is-address"],
    ["10.0.0.0/8", "host-invalid"],
    ["https://example.com", "port-invalid"],
    ["a@b.com", "host-invalid"],
    ["a b.com", "host-invalid"],
    ["a\u0000.com", "host-invalid"],
    ["a%00.com", "host-invalid"],
    ["a..com", "host-invalid"],
    [".com", "host-invalid"],
    ["-a.com", "host-invalid"],
    [`${"a".repeat(64)}.com`, "host-invalid"],
    [`${"a.".repeat(127)}com`, "host-invalid"],
    ["a.com:", "port-invalid"],
    ["a.com:0", "port-invalid"],
    ["a.com:65536", "port-invalid"],
    ["a.com:+80", "port-invalid"],
  ])("refuses %j", (text, code) => {
    const parsed = parseHostRule(text);
    expect(parsed).toMatchObject({ ok: false, problem: { code } });
    if (!parsed.ok) expect(parsed.problem.message).toContain(JSON.stringify(text));
  });
});

describe("parseRange", () => {
  it.each([
    ["10.0.0.0/8", "10.0.0.0", 8],
    ["203.0.113.7", "203.0.113.7", 32],
    ["0.0.0.0/0", "0.0.0.0", 0],
    ["2001:db8::/32", "2001:db8::", 32],
    ["::1", "::1", 128],
    ["::/0", "::", 0],
  ])("%s", (text, network, prefix) => {
    const parsed = parseRange(text);
    expect(parsed).toMatchObject({ ok: true, rule: { text, prefix } });
    if (parsed.ok) expect(parsed.rule.network.toString()).toBe(network);
  });

  it.each([
    ["", /an address and a prefix length/],
    ["example.com", /an address and a prefix length/],
    ["10.0.0.0/33", /at most 32/],
    ["::/129", /at most 128/],
    ["10.0.0.1/8", /write 10\.0\.0\.0\/8/],
    ["2001:db8::1/32", /write 2001:db8::\/32/],
    ["010.0.0.0/8", /an address and a prefix length/],
    ["0x0a.0.0.0/8", /an address and a prefix length/],
    ["10/8", /an address and a prefix length/],
    ["10.0.0.0/", /an address and a prefix length/],
    ["10.0.0.0/-1", /an address and a prefix length/],
    ["::ffff:10.0.0.0/104", /IPv4 range/],
    ["fe80::1%eth0", /an address and a prefix length/],
    [" 10.0.0.0/8", /an address and a prefix length/],
  ])("refuses %j", (text, message) => {
    const parsed = parseRange(text);
    expect(parsed.ok ? "accepted" : parsed.problem.message).toMatch(message);
  });
});
