import { PluginBrokeContract } from "@ambit/core";
import type { HarnessBehaviour } from "@ambit/fakes/harness";
import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { FakeWorkspaces } from "../fakes/workspaces.js";
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
  test("is passed only to the sandbox, and the receipt lists it as visible nowhere", async () => {
    await using world = await createWorld({
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
  });

  test("isn't hidden if the request doesn't require it", async () => {
    await using world = await createWorld({
      script: says("ok"),
      harness,
      sandbox: { placeholders: { KEY: "p" } },
    });
    const { result } = await world.run(asking("sk-first", "visible"));
    expect(result.receipt?.visibleCredentials).toEqual(["KEY"]);
    expect(world.sandbox.specs[0]?.secrets).toBeUndefined();
  });

  test("opens another sandbox when it changes", async () => {
    await using world = await createWorld({
      rules: { workspaces: new FakeWorkspaces() },
      script: says("ok"),
      harness,
      sandbox: { placeholders: { KEY: "placeholder-1" } },
    });
    await world.run(asking("sk-first"));
    await world.run(asking("sk-first"));
    expect(world.sandbox.opened).toBe(1);
    await world.run(asking("sk-second"));
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 1 });
  });

  test("fails the run if the sandbox returns no placeholder for it", async () => {
    await using world = await createWorld({ script: says("never"), harness, sandbox: { placeholders: {} } });
    const { failure } = await world.run(asking("sk-first"));
    expect(failure).toBeInstanceOf(PluginBrokeContract);
    expect(failure?.message).toContain("KEY");
    expect(world.harness.starts).toEqual([]);
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
  });
});
