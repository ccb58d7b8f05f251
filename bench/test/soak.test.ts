import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { linux } from "../src/needs.js";
import { soakTable } from "../src/soak/report.js";
import { hostileRuns, normalRuns } from "../src/soak/runs.js";
import type { SoakReport } from "../src/soak/soak.js";

/** The built bench: the server that it starts loads a plugin of it. */
const program = fileURLToPath(new URL("../dist/soak/main.js", import.meta.url));

/** A server grows by its caches and by eight concurrent runs; a leak grows with the number of runs. */
const maxGrowthMib = 1_536;
/** For eight concurrent runs, each with an agent, the processes of its jail, tools and probes. */
const maxProcesses = 200;
const maxDescriptors = 1_000;

it("a server stays within bounds while hostile agents, slow readers and broken tools share it with normal runs", async (context) => {
  const missing = await linux.missing();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const { stdout } = await promisify(execFile)(process.execPath, [
    program,
    "--seconds",
    process.env.AMBIT_SOAK ? "60" : "6",
    "--json",
  ]).catch((failed: { readonly stdout: string }) => failed);
  const report: SoakReport = JSON.parse(stdout);
  // Not asserted, since a busy machine adds delays of its own.
  console.log(soakTable(report));
  expect(report.surprises).toEqual([]);
  expect(Object.keys(report.runs).toSorted()).toEqual(
    [...Object.keys(hostileRuns), ...Object.keys(normalRuns)].toSorted(),
  );
  expect(report.max.rssMib - report.before.rssMib).toBeLessThan(maxGrowthMib);
  expect(report.max.processes).toBeLessThan(maxProcesses);
  expect(report.max.descriptors).toBeLessThan(maxDescriptors);
  expect(report.after.processes).toBeLessThanOrEqual(report.before.processes);
  expect(report.after.descriptors).toBeLessThanOrEqual(report.before.descriptors + 10);
  expect(report.files.after).toBeLessThanOrEqual(report.files.before + 10);
  // The control: the load really was concurrent.
  expect(report.max.processes).toBeGreaterThan(report.before.processes);
}, 180_000);
