import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log, Sandbox, SandboxSpec } from "@ambit/core/plugin";
import { expect, it, onTestFinished } from "vitest";
import { probeSpec, type SandboxOrder, SandboxSupply } from "../src/index.js";

interface Given {
  readonly made: string;
  readonly spec: string;
  readonly overrides: object;
}

const unused = async () => {
  throw new Error("nothing is run in it");
};
const sandbox: Sandbox = {
  workspace: "/workspace",
  home: "/home",
  confinement: "confined",
  evidence: {},
  spawn: unused,
  writeFiles: unused,
  readFile: unused,
  expose: unused,
  close: async () => undefined,
};

/** What was made, by the id of its order, and given to whom. A prepared one can be told to fail. */
async function supplyOf(options: { isPrewarmAsked: boolean; fails?: (made: string) => boolean }) {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-supply-"));
  onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
  const orders: SandboxOrder[] = [];
  const given: Given[] = [];
  const warnings: unknown[] = [];
  const log: Log = { debug() {}, info() {}, warn: (fields) => void warnings.push(fields), error() {} };
  const supply = new SandboxSupply({
    platform: "Test",
    plugin: "test",
    dataFolder,
    deployment: "d",
    ttlMinutes: 1,
    reapMinutes: 60,
    async *leftovers() {},
    prewarm: 1,
    isPrewarmAsked: options.isPrewarmAsked,
    overrides: { lookup: "the runner's", trusted: "none" },
    make: async (order) => {
      orders.push(order);
      return {
        isUsable: true,
        close: async () => undefined,
        give: async ({ id }: SandboxSpec, overrides: object) => {
          if (options.fails?.(order.id)) throw new Error("lost");
          given.push({ made: order.id, spec: id, overrides });
          return sandbox;
        },
      };
    },
  });
  onTestFinished(() => supply.close());
  const open = (id: string) =>
    supply.open(probeSpec({}, { id, log }), { signal: AbortSignal.timeout(5_000), defer() {} });
  return { supply, orders, given, warnings, open };
}

const isWarm = ({ id }: SandboxOrder) => id.startsWith("warm-");

it("prepares one for the next session after the second, or after the first where that was asked for", async () => {
  const patient = await supplyOf({ isPrewarmAsked: false });
  await patient.open("one");
  await new Promise((go) => setTimeout(go, 400));
  expect(patient.orders.map(({ id }) => id)).toEqual(["one"]);
  await patient.open("two");
  await expect.poll(() => patient.orders.filter(isWarm).length).toBe(1);
  const asked = await supplyOf({ isPrewarmAsked: true });
  await asked.open("one");
  await expect.poll(() => asked.orders.filter(isWarm).length).toBe(1);
  await asked.open("two");
  expect(asked.given.at(-1)).toMatchObject({ made: expect.stringMatching(/^warm-/), spec: "two" });
});

it("gives a new one in place of a prepared one that fails, and says so in the session's log", async () => {
  const { orders, given, warnings, open } = await supplyOf({
    isPrewarmAsked: true,
    fails: (made) => made.startsWith("warm-"),
  });
  await open("one");
  await expect.poll(() => orders.filter(isWarm).length).toBe(1);
  await open("two");
  expect(given.at(-1)).toMatchObject({ made: "two", spec: "two" });
  expect(warnings).toHaveLength(1);
});

it("gives a probe a new one, with its overrides in place of a session's", async () => {
  const { supply, given } = await supplyOf({ isPrewarmAsked: true });
  await supply.openNew(
    probeSpec({}, { id: "p" }),
    { signal: AbortSignal.timeout(5_000) },
    { trusted: "its own" },
  );
  expect(given).toEqual([
    { made: "p", spec: "p", overrides: { lookup: "the runner's", trusted: "its own" } },
  ]);
});
