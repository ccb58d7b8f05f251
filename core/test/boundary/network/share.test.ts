import { expect, it } from "vitest";
import { listsWideRanges, parseNetworkRule } from "../../../src/boundary.js";

/** `0.0.0.0/prefix` without its last address, as ranges. */
const withoutOne = (prefix: number) =>
  Array.from({ length: 32 - prefix }, (_, at) => {
    const from = 2 ** (32 - prefix) - 2 ** (32 - prefix - at);
    const bytes = [24, 16, 8, 0].map((shift) => Math.floor(from / 2 ** shift) % 256);
    return `${bytes.join(".")}/${prefix + at + 1}`;
  });

it.each([
  [true, ["0.0.0.0/1"]],
  // Half of all but one address.
  [true, withoutOne(1)],
  [true, ["0.0.0.0/4"]],
  [true, ["0.0.0.0/5", "128.0.0.0/5"]],
  [true, ["192.0.0.0/5:443", "a.example", "0.0.0.0/5:80"]],
  [true, Array.from({ length: 16 }, (_, at) => `${at + 10}.0.0.0/8`)],
  [true, ["::/0"]],
  [true, ["2000::/7"]],
  [true, ["2000::/8", "3000::/8"]],
  [false, []],
  [false, ["*.co.example"]],
  [false, withoutOne(4)],
  [false, Array.from({ length: 15 }, (_, at) => `${at + 10}.0.0.0/8`)],
  // What several hold counts once.
  [false, ["0.0.0.0/5", "0.0.0.0/6", "0.0.0.0/5:443", "64.0.0.0/6"]],
  // Each family by itself.
  [false, ["0.0.0.0/5", "64.0.0.0/6", "2000::/8", "2800::/9"]],
  // All private networks.
  [false, ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"]],
  // Not public.
  [false, ["fc00::/7", "ff00::/8", "8000::/2"]],
] satisfies [boolean, readonly string[]][])("%j: %j", (expected, entries) => {
  const rules = entries.flatMap((entry) => {
    const parsed = parseNetworkRule(entry);
    return "rule" in parsed ? [parsed.rule] : [];
  });
  expect(rules).toHaveLength(entries.length);
  expect(listsWideRanges(rules)).toBe(expected);
});
