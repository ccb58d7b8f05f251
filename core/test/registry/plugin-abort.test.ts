import { getMaxListeners, setMaxListeners } from "node:events";
import { expect, test } from "vitest";
import { newPluginAbort } from "../../src/plugin/index.js";

test("a signal for plugins allows many listeners, up to a limit that a client may read and raise", () => {
  const { signal } = newPluginAbort();
  // undici raises what is below its own need, and must find a number that it can compare.
  const limit = getMaxListeners(signal);
  expect(limit).toBeGreaterThan(1_500);
  expect(Number.isFinite(limit)).toBe(true);
  expect(() => setMaxListeners(limit + 1, signal)).not.toThrow();
});
