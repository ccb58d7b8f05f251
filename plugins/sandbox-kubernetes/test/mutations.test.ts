import { bridgeMutants } from "@ambit/fakes/bridge-mutants";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { describe, expect, it } from "vitest";
import { isNoticed, renderPodMutants, runPodBridgeMutants, runPodMutants } from "./mutation/run-mutants.ts";
import { TestNamespace } from "./support/on-cluster.js";

const reason = process.env.AMBIT_SOAK
  ? await ownUnavailableReason()
  : "the mutants of pods take minutes: set AMBIT_SOAK=1";

describe("a pod without one mechanism of its specification", () => {
  it("is refused when the cluster left it out, and noticed when the plugin forgot it", {
    timeout: 1_800_000,
  }, async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const namespace = await TestNamespace.open({ enforced: false });
    const settings = { ...namespace.settings, hostUsers: "require", openTimeoutMs: 15_000 } as const;
    const rows = await runPodMutants(settings);
    await namespace.close();
    expect(
      rows.filter((row) => !isNoticed(row)),
      renderPodMutants(rows),
    ).toEqual([]);
  });
});

it("a bridge without one mechanism of connections into pods is noticed by the probe", {
  timeout: 600_000,
}, async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const namespace = await TestNamespace.open({ enforced: false });
  const rows = await runPodBridgeMutants({ ...namespace.settings, hostUsers: "require" });
  await namespace.close();
  expect(rows.map(({ mutant }) => mutant)).toEqual(bridgeMutants);
  for (const { mutant, reason } of rows) expect(reason, mutant.name).toMatch(mutant.reason);
});
