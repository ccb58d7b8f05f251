import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { isCaught, type MutantRow, runMutants } from "@ambit/sandbox-local/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import makeBackend, { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

const table = readFileSync(new URL("../../../../docs/mutations.md", import.meta.url), "utf8");
const isRoot = process.getuid?.() === 0;

describe("the local sandbox without one part of its jail", () => {
  let reason: string | undefined;
  let rows: readonly MutantRow[];
  beforeAll(async () => {
    const backend = makeBackend(dataFolder);
    const findings = await backend.probe(AbortSignal.timeout(60_000));
    const failed = findings.find(({ proven, capability }) => !proven && !capability.startsWith("resources."));
    if (failed?.proven === false) {
      reason = `host: ${failed.capability} isn't proven here: ${failed.reason}`;
      return;
    }
    rows = (await runMutants(backend)) ?? [];
  }, 400_000);

  it("is detected, whichever part is missing", (context) => {
    if (reason !== undefined) context.skip(reason);
    const survivors = rows.filter((row) => !isCaught(row)).map(({ name }) => name);
    // bubblewrap gives an ordinary user no capabilities to drop.
    expect(survivors).toEqual(isRoot ? [] : ["--cap-drop ALL"]);
    expect(rows.length).toBeGreaterThan(100);
  });

  it("allows an attack that the complete jail stops", (context) => {
    if (reason !== undefined) context.skip(reason);
    const made = rows.flatMap(({ name, attack }) => (attack === undefined ? [] : [{ name, ...attack }]));
    expect(made.length).toBeGreaterThan(30);
    expect(made.filter((one) => one.with.result === "reached")).toEqual([]);
    // If the attack fails without the part too, this host lacks what it needs: vsock, io_uring, keyrings.
    const idle = made.filter((one) => one.without.result !== "reached");
    expect(idle.filter(({ attack }) => !needsOfHost.includes(attack))).toEqual([]);
  });

  it("is listed in docs/mutations.md", (context) => {
    if (reason !== undefined) context.skip(reason);
    const told = rows.filter(({ name, kind }) => kind === "system call filter" || name.startsWith("--"));
    const missing = told.filter(({ name }) => !table.includes(`| \`${name}\` |`)).map(({ name }) => name);
    expect(missing, "run: node scripts/mutations.mjs").toEqual([]);
  });
});

const needsOfHost = [
  "network.deny/vsock",
  "network.deny/vsock-foreign-call",
  "network.deny/io-uring",
  "process.contained/keyring",
  "filesystem.host-hidden/key-list",
];
