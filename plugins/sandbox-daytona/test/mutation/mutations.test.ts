import { readFileSync } from "node:fs";
import { unavailableReason } from "@ambit/daytona-loopback";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { mutants, sizeMutants } from "./mutants.ts";
import { bridgeMutants, runDaytonaBridgeMutants } from "./run-bridge-mutants.ts";
import { type DaytonaMutantRow, isNoticed, runDaytonaMutants, wholeCanaries } from "./run-mutants.ts";

const table = readFileSync(new URL("../../../../docs/mutations.md", import.meta.url), "utf8");
const reason = unavailableReason();

describe("a Daytona without one mechanism", () => {
  let rows: readonly DaytonaMutantRow[] = [];
  beforeAll(async () => {
    if (reason === undefined) rows = await runDaytonaMutants();
  }, 900_000);
  beforeEach((context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
  });
  const rowOf = (name: string) => rows.find(({ mutant }) => mutant.name === name);

  it("is noticed by its canary in each capability that the mechanism enforces, or by each start", () => {
    expect(rows.length).toBe(mutants.length);
    expect(rows.filter((row) => !isNoticed(row))).toEqual([]);
  });

  it("isn't started where it reports what it left out, or lets a process out", () => {
    const open = rows.filter(({ mutant, start }) => mutant.of === "order" && start === undefined);
    expect(open).toEqual([]);
    for (const [name, said] of [
      ["limits of IPv6", /\[fd99::10\]:80 \(HTTP 200\), an IPv6 address of its own \(fd98/],
      ["limits of datagrams", /10\.99\.0\.12:53 \(UDP\) \(a datagram was answered\)/],
      ["limits of the gateway", /its gateway \(10\.98\.\d+\.1:8080 connected\)/],
      ["limits of essential services", /other\.example\.test:80/],
      ["a resolver that a sandbox without a network doesn't reach", /lookup of name\.example\.test/],
    ] as const)
      expect(rowOf(name)?.start, name).toMatch(said);
  });

  it("still has the other capabilities proven", () => {
    for (const name of wholeCanaries.slice(1))
      expect(rowOf(name)?.canary.map(({ capability }) => capability)).toEqual(rowOf(name)?.mutant.breaks);
  });
});

it("a bridge without one mechanism of connections into sandboxes is noticed by the canary", {
  timeout: 300_000,
}, async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const rows = await runDaytonaBridgeMutants();
  expect(rows.map(({ mutant }) => mutant)).toEqual(bridgeMutants);
  expect(rows.filter((row) => !isNoticed(row))).toEqual([]);
});

it("every mutant is listed in docs/mutations.md", () => {
  const missing = [...mutants, ...sizeMutants, ...bridgeMutants].filter(
    ({ name, of }) => !table.includes(`| ${of} | ${name} |`),
  );
  expect(missing, "run: node scripts/docs/mutations.mjs").toEqual([]);
});
