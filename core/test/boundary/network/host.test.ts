import { describe, expect, it } from "vitest";
import { readHost } from "../../../src/boundary.js";

describe("readHost", () => {
  it.each([
    ["example.com", "name", "example.com"],
    ["EXAMPLE.Com", "name", "example.com"],
    ["example.com.", "name", "example.com"],
    ["exa\u3002mple.com", "name", "exa.mple.com"],
    ["ｅxample.com", "name", "example.com"],
    ["exam\u00adple.com", "name", "example.com"],
    ["bücher.de", "name", "xn--bcher-kva.de"],
    ["localhost", "name", "localhost"],
    ["127.0.0.1", "address", "127.0.0.1"],
    ["127.0.0.1.", "address", "127.0.0.1"],
    ["127.1", "address", "127.0.0.1"],
    ["0x7f.1", "address", "127.0.0.1"],
    ["2130706433", "address", "127.0.0.1"],
    ["0177.0.0.1", "address", "127.0.0.1"],
    ["0x7f000001", "address", "127.0.0.1"],
    ["１２７.0.0.1", "address", "127.0.0.1"],
    ["0", "address", "0.0.0.0"],
    ["[::1]", "address", "::1"],
    ["[0:0:0:0:0:0:0:1]", "address", "::1"],
    ["[::FFFF:127.0.0.1]", "address", "::ffff:7f00:1"],
    ["[2001:DB8::1]", "address", "2001:db8::1"],
  ])("%j", (raw, kind, host) => {
    expect(readHost(raw)).toEqual({ ok: true, kind, host });
  });

  it.each([
    "",
    ".",
    "..",
    "a..b",
    ".a",
    "a..",
    "ok.test\u0000.evil.test",
    "ok.test\r\nx",
    "ok.test\t",
    "ok test",
    "ok.test%00",
    "ok.test%2eevil.test",
    "[fe80::1%25eth0]",
    "[::1",
    "[::1]:80",
    "[::1].test",
    "::1",
    "ok.test/evil.test",
    "ok.test\\evil.test",
    "ok.test@evil.test",
    "ok.test#evil.test",
    "ok.test?evil.test",
    "ok.test:80",
    "*.test",
    "ok.test;x",
    "1.2.3.256",
    "1.2.3.4.5",
    "xn--a",
    "a\u202eb.test\u0085",
    `${"a".repeat(64)}.test`,
    `${"abc.".repeat(63)}test`,
  ])("refuses %j", (raw) => {
    expect(readHost(raw).ok).toBe(false);
  });
});
