import type { Log, Sandbox, SandboxLayers } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { Layers } from "../src/environment/environments.js";
import { hostSandbox } from "./host-sandbox.js";

const noSignal = new AbortController().signal;
const never = () => new Promise<never>(() => undefined);

/** A platform that remembers names, and what is opened and closed. */
function platform(more: Partial<SandboxLayers> = {}) {
  const names = new Set<string>();
  const seen = { opened: 0, closed: 0, warnings: 0 };
  const ignore = () => undefined;
  const warn = () => {
    seen.warnings += 1;
  };
  const log: Log = { debug: ignore, info: ignore, warn, error: ignore };
  const kept: SandboxLayers = {
    system: async () => "one",
    supports: () => true,
    has: async (name) => names.has(name),
    ...more,
  };
  const open = async (name: string): Promise<Sandbox> => {
    seen.opened += 1;
    return {
      ...hostSandbox("/nowhere"),
      keepAsLayer: async () => void names.add(name),
      close: async () => {
        seen.closed += 1;
      },
    };
  };
  return { seen, of: { kept, open, log } };
}

describe("a layer", () => {
  it("is made by one of all runs that need it at the same time, and by none that comes later", async () => {
    const { seen, of } = platform();
    const layers = new Layers();
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const asked = [1, 2, 3].map(() => layers.ensure(of, "a", () => written, noSignal));
    resolve();
    expect(await Promise.all(asked)).toEqual([true, true, true]);
    expect(await layers.ensure(of, "a", never, noSignal)).toBe(true);
    expect(seen).toEqual({ opened: 1, closed: 0, warnings: 0 });
  });

  it("isn't kept where its files can't be written: its sandbox is closed, and the next run tries again", async () => {
    const { seen, of } = platform();
    const layers = new Layers();
    expect(await layers.ensure(of, "a", () => Promise.reject(new Error("full")), noSignal)).toBe(false);
    expect(seen).toEqual({ opened: 1, closed: 1, warnings: 1 });
    expect(await layers.ensure(of, "a", async () => undefined, noSignal)).toBe(true);
  });

  it("is done without where the platform doesn't answer in time", async () => {
    const { seen, of } = platform({ has: never });
    expect(await new Layers().ensure(of, "a", never, AbortSignal.timeout(20))).toBe(false);
    expect(seen).toEqual({ opened: 0, closed: 0, warnings: 1 });
  });
});
