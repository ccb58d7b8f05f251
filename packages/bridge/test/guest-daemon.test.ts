import { readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { describe, expect, it } from "vitest";
import { bundleGuest } from "../bundle-guest.mjs";

const built = await readFile(new URL("../dist/guest-daemon.cjs", import.meta.url), "utf8");

describe("the guest daemon's bundle", () => {
  it("matches its sources", async () => {
    expect(built).toBe(await bundleGuest({ write: false }));
  });

  it("imports nothing but Node's own modules", () => {
    const imported = [...built.matchAll(/\b(?:from|import|require)\s*\(?"([^"]+)"/g)].map(([, name]) => name);
    expect(imported.length).toBeGreaterThan(5);
    const own = new Set(builtinModules.map((name) => `node:${name}`));
    expect(imported.filter((name) => name === undefined || !own.has(name))).toEqual([]);
  });
});
