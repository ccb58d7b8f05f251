import { PluginBrokeContract } from "@ambit/core";
import { describe, expect, test } from "vitest";
import type { HarnessBehaviour } from "../../../../core/test/fakes/harness.js";
import { says } from "../../../../core/test/fakes/harness.js";
import { createWorld } from "../fakes/world.js";

const harness: HarnessBehaviour = {
  visibleCredentials: () => ["KEY"],
  hideableCredentials: ({ modelConnection }) =>
    (modelConnection?.credentials ?? []).map(({ binding, value }) => ({
      name: binding.name,
      value,
      hosts: ["api.example.com"],
    })),
};

const asking = (value: string, secrets = "hidden") => ({
  sessionId: "one",
  sandboxPermission: { secrets },
  modelConnection: { credentials: [{ binding: { kind: "environment", name: "KEY" }, value }] },
});

describe("a credential that the sandbox hides", () => {
  test("is given to the sandbox alone, and the receipt calls it visible nowhere", async () => {
    const world = await createWorld({
      script: says("ok"),
      harness,
      sandbox: { placeholders: { KEY: "placeholder-1" } },
    });
    const { result } = await world.run(asking("sk-first"));
    expect(result).toMatchObject({ ok: true, receipt: { visibleCredentials: [] } });
    expect(world.sandbox.specs[0]?.secrets).toEqual([
      { name: "KEY", value: "sk-first", hosts: ["api.example.com"] },
    ]);
    expect(world.harness.starts[0]?.sandbox.placeholders).toEqual({ KEY: "placeholder-1" });
    expect(JSON.stringify(result)).not.toContain("sk-first");
    await world.runner.drain(0);
  });

  test("isn't hidden where the request doesn't ask for it", async () => {
    const world = await createWorld({ script: says("ok"), harness, sandbox: { placeholders: { KEY: "p" } } });
    const { result } = await world.run(asking("sk-first", "visible"));
    expect(result.receipt?.visibleCredentials).toEqual(["KEY"]);
    expect(world.sandbox.specs[0]?.secrets).toBeUndefined();
    await world.runner.drain(0);
  });

  test("opens another sandbox when it changes: one that was given yesterday's key is of no use", async () => {
    const world = await createWorld({
      script: says("ok"),
      harness,
      sandbox: { placeholders: { KEY: "placeholder-1" } },
    });
    await world.run(asking("sk-first"));
    await world.run(asking("sk-first"));
    expect(world.sandbox.opened).toBe(1);
    await world.run(asking("sk-second"));
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 1 });
    await world.runner.drain(0);
  });

  test("fails the run when the sandbox gives no placeholder for it", async () => {
    const world = await createWorld({ script: says("never"), harness, sandbox: { placeholders: {} } });
    const { failure } = await world.run(asking("sk-first"));
    expect(failure).toBeInstanceOf(PluginBrokeContract);
    expect(failure?.message).toContain("KEY");
    expect(world.harness.starts).toEqual([]);
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
    await world.runner.drain(0);
  });
});
