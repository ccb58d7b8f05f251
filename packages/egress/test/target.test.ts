import { describe, expect, it } from "vitest";
import { formatTarget, readAuthority, readTarget } from "../src/target.js";

describe("readAuthority and readTarget", () => {
  it.each([
    ["ok.test:443", undefined, "ok.test:443"],
    ["OK.test.", 80, "ok.test:80"],
    ["[::1]:8080", undefined, "[::1]:8080"],
    ["2130706433:80", undefined, "127.0.0.1:80"],
    ["ok.test:00080", undefined, "ok.test:80"],
  ])("%s", (raw, defaultPort, formatted) => {
    const reading = readAuthority(raw, defaultPort);
    expect(reading.ok ? formatTarget(reading.target) : reading.why).toBe(formatted);
  });

  it.each([
    "ok.test",
    "ok.test:",
    "ok.test:0",
    "ok.test:65536",
    "ok.test:-1",
    "ok.test:8 0",
    "a:b:1",
    "u@ok.test:80",
    ":80",
  ])("refuses %j", (raw) => {
    expect(readAuthority(raw).ok).toBe(false);
  });

  it("refuses invalid ports", () => {
    for (const port of [0, -1, 65536, 1.5, Number.NaN]) expect(readTarget("ok.test", port).ok).toBe(false);
  });
});
