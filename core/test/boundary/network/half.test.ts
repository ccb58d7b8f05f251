import { expect, it } from "vitest";
import { listsHalfOfAddresses } from "../../../src/boundary/network/half.js";
import { parseNetworkRule } from "../../../src/boundary/network/rule.js";

it.each([
  [true, ["0.0.0.0/1"]],
  [true, ["0.0.0.0/2", "128.0.0.0/2"]],
  [true, ["192.0.0.0/2:443", "a.example", "0.0.0.0/2:80"]],
  [true, ["0.0.0.0/3", "32.0.0.0/3", "64.0.0.0/3", "96.0.0.0/4", "112.0.0.0/4"]],
  [true, ["::/0"]],
  [true, ["2000::/4"]],
  [true, ["2000::/5", "3000::/5"]],
  [false, []],
  [false, ["*.co.example"]],
  [false, ["0.0.0.0/2", "0.0.0.0/3", "0.0.0.0/2:443", "64.0.0.0/3"]],
  // Each family by itself.
  [false, ["0.0.0.0/2", "64.0.0.0/3", "2000::/5", "2800::/6"]],
  // Not public.
  [false, ["fc00::/7", "ff00::/8", "8000::/2"]],
] as const)("%j: %j", (expected, entries) => {
  const rules = entries.flatMap((entry) => {
    const parsed = parseNetworkRule(entry);
    return "rule" in parsed ? [parsed.rule] : [];
  });
  expect(rules).toHaveLength(entries.length);
  expect(listsHalfOfAddresses(rules)).toBe(expected);
});
