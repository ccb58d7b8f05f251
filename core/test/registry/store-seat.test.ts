import { definePlugin, type StoreBackend } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { PluginLoadFailed, Registry } from "../../src/index.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const backend: StoreBackend = { name: "memory", open: () => Promise.reject(new Error("not opened here")) };
const offering = (name: string) =>
  definePlugin({ name, api: 1, config: z.strictObject({}), register: ({ add }) => add("store", backend) });
const load = (...names: string[]) =>
  Registry.load(
    names.map((name) => `@ambit/${name}`),
    async (name) => offering(name.slice("@ambit/".length)),
    { timeoutMs: 1, maxAgeMs: 1, retryMs: 15_000 },
    log,
  );

describe("the registration of a store", () => {
  it("keeps a plugin's store, which isn't an actor", async () => {
    const registry = await load("one");
    expect(registry.store).toBe(backend);
    expect(registry.registrations).toEqual([]);
    expect(registry.offers).toEqual([{ plugin: "one", kind: "store", name: "memory" }]);
    expect((await load()).store).toBeUndefined();
  });

  it("is possible once: a second one fails the start", async () => {
    await expect(load("one", "two")).rejects.toThrow(PluginLoadFailed);
    await expect(load("one", "two")).rejects.toThrow(
      "two: offers the store 'memory', and one already offers one: load only one of them: leave out a default plugin by without: [\"@ambit/two\"]",
    );
  });
});
