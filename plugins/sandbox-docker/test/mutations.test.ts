import { readFileSync } from "node:fs";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { bridgeMutants } from "@ambit/fakes/bridge-mutants";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type DockerMutantRow, runDockerBridgeMutants, runDockerMutants } from "./mutation/run-mutants.ts";

const table = readFileSync(new URL("../../../docs/mutations.md", import.meta.url), "utf8");
const reason = unavailableReason("runc");

describe("a container without one mechanism of its order", () => {
  let rows: readonly DockerMutantRow[] = [];
  beforeAll(async () => {
    if (reason !== undefined) return;
    const { socket, image } = dockerEngine();
    rows = await runDockerMutants(
      socket,
      { image, runtime: "runc", network: "none", deployment: "mutants" },
      { isWhole: Boolean(process.env.AMBIT_SOAK) },
    );
  }, 400_000);
  beforeEach((context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
  });

  it("is refused when the engine ignored it", () => {
    expect(rows.length).toBeGreaterThan(15);
    expect(
      rows.filter(({ readBack }) => !readBack?.startsWith("The engine")).map(({ name }) => name),
    ).toEqual([]);
    // An engine that can't even start it shows nothing about what is read back.
    expect(rows.filter(({ readBack }) => readBack?.includes("couldn't"))).toEqual([]);
  });

  it("isn't proven by the probe, had the plugin forgotten it", () => {
    expect(rows.filter(({ probe }) => probe.length === 0).map(({ name }) => name)).toEqual([]);
    const unstarted = rows.filter(({ probe }) => probe.some((one) => one.reason.startsWith("The engine")));
    expect(unstarted).toEqual([]);
  });

  it("is listed in docs/mutations.md", () => {
    const missing = rows.filter(({ name }) => !table.includes(`| ${name} |`)).map(({ name }) => name);
    expect(missing, "run: node scripts/docs/mutations.mjs").toEqual([]);
  });
});

it("a bridge without one mechanism of connections into containers is noticed by the probe", {
  timeout: 200_000,
}, async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const { socket, image } = dockerEngine();
  const settings = { image, runtime: "runc", network: "none", deployment: "mutants" };
  const rows = await runDockerBridgeMutants(socket, settings);
  expect(rows.map(({ mutant }) => mutant)).toEqual(bridgeMutants);
  for (const { mutant, reason } of rows) {
    expect(reason, mutant.name).toMatch(mutant.reason);
    expect(table, "run: node scripts/docs/mutations.mjs").toContain(`| ${mutant.name} |`);
  }
});
