import { ownUnavailableReason } from "@ambit/test-cluster";
import { describe, expect, it } from "vitest";
import { scope, specOf, TestNamespace } from "./support/on-cluster.js";

const reason = await ownUnavailableReason();

describe("prepared pods", { timeout: 240_000 }, () => {
  it("go to one session each, also when two ask at the same time", async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const namespace = await TestNamespace.open({ enforced: false });
    const backend = namespace.backend({ hostUsers: "require", prewarm: 2 });
    const used: string[] = [];
    /** Two sessions at once. @returns how many of them got a prepared pod. */
    const openTwo = async () => {
      const prepared = await namespace.sessions();
      const both = await Promise.all([backend.open(specOf(), scope), backend.open(specOf(), scope)]);
      const names = both.map(({ evidence }) => String(evidence["kubernetes.pod"]).split("/")[1] ?? "");
      expect(new Set([...used, ...names]).size).toBe(used.length + 2);
      used.push(...names);
      await Promise.all(both.map((sandbox) => sandbox.close()));
      return names.filter((name) => prepared.get(name)?.startsWith("warm-")).length;
    };
    try {
      expect(await openTwo()).toBe(0);
      // Those that weren't ready for one pair wait for the next.
      await expect.poll(openTwo, { timeout: 180_000, interval: 2_000 }).toBe(2);
    } finally {
      await backend.close();
    }
    expect([...(await namespace.sessions()).keys()]).toEqual([]);
    await namespace.close();
  });
});
