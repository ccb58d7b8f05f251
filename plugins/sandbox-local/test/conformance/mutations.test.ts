import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Finding } from "@ambit/core/plugin";
import { requireProven } from "@ambit/testkit/vitest";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import makeBackend, { configOf, makeDataFolder } from "./backend.mjs";
import { isCaught, type MutantRow, runMutants } from "./mutation/run-mutants.ts";

const dataFolder = makeDataFolder();
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

const table = readFileSync(new URL("../../../../docs/mutations.md", import.meta.url), "utf8");
const isRoot = process.getuid?.() === 0;

describe("the local sandbox without one part of its jail", () => {
  const backend = makeBackend(dataFolder);
  let findings: readonly Finding[];
  let rows: readonly MutantRow[];
  beforeAll(async () => {
    findings = await backend.probe(AbortSignal.timeout(60_000));
    rows = isWhole() ? await runMutants({ config: configOf(dataFolder), dataFolder }) : [];
  }, 400_000);
  const ofJails = () => findings.filter(({ capability }) => !capability.startsWith("resources."));
  const isWhole = () => ofJails().every(({ proven }) => proven);
  const requireUnmodified = (context: TestContext) => {
    for (const { capability } of ofJails()) requireProven(context, backend, findings, capability);
  };

  it("is detected, whichever part is missing", (context) => {
    requireUnmodified(context);
    const survivors = rows.filter((row) => !isCaught(row)).map(({ name }) => name);
    // bubblewrap gives an ordinary user no capabilities to drop.
    expect(survivors).toEqual(isRoot ? [] : ["--cap-drop ALL"]);
    expect(rows.length).toBeGreaterThan(100);
  });

  it("allows an attack that the complete jail stops", (context) => {
    requireUnmodified(context);
    const made = rows.flatMap(({ name, attack }) => (attack === undefined ? [] : [{ name, ...attack }]));
    expect(made.length).toBeGreaterThan(30);
    expect(made.filter((one) => one.with.result === "reached")).toEqual([]);
    // If the attack fails without the part too, this host lacks what it needs: vsock, io_uring, keyrings.
    const idle = made.filter((one) => one.without.result !== "reached");
    expect(idle.filter(({ attack }) => !needsOfHost.includes(attack))).toEqual([]);
  });

  it("is listed in docs/mutations.md", (context) => {
    requireUnmodified(context);
    const calls = rows.filter(({ name, kind }) => kind === "system call filter" || name.startsWith("--"));
    const missing = calls.filter(({ name }) => !table.includes(`| \`${name}\` |`)).map(({ name }) => name);
    expect(missing, "run: node scripts/docs/mutations.mjs").toEqual([]);
  });
});

const needsOfHost = [
  "network.deny/vsock",
  "network.deny/vsock-foreign-call",
  "network.deny/io-uring",
  "process.contained/keyring",
  "filesystem.host-hidden/key-list",
];
