import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "@ambit/core";
import { pause } from "../machine/program.js";
import { temporaryFolder } from "../machine/temporary-folder.js";
import { confinement } from "../needs.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { type Loop, loopIn } from "./loop-looks.js";
import { startPlatform } from "./platform.js";
import { hostileRuns, normalRuns, type Stage } from "./runs.js";
import { percentile, type Vitals, vitalsOf, watch } from "./vitals.js";

export interface SoakOptions {
  readonly seconds: number;
  /** Concurrent runs. */
  readonly atOnce: number;
  /** Only kinds of runs whose names contain this. Default: all. */
  readonly only?: string;
}

export interface SoakReport {
  readonly seconds: number;
  readonly atOnce: number;
  /** Undefined if this host can't confine: then the runs had no boundary. */
  readonly boundary: string | undefined;
  /** Completed runs of each kind. */
  readonly runs: Readonly<Record<string, number>>;
  /** Broken promises. */
  readonly surprises: readonly string[];
  /** After each kind ran once, the largest during the soak, and after it. */
  readonly before: Vitals;
  readonly max: Vitals;
  readonly after: Vitals;
  readonly eventLoop: Loop;
  readonly healthMs: {
    readonly count: number;
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
  /** Files and folders in the server's data folder, before and after. */
  readonly files: { readonly before: number; readonly after: number };
}

/** Milliseconds after the last run in which its leftovers must be removed. */
const settlingMs = 10_000;
const loopWatch = fileURLToPath(new URL("../plugins/loop-watch.js", import.meta.url));

/** Mixes hostile agents, slow readers, broken callbacks and normal runs on one real server. */
export async function soak({ seconds, atOnce, only = "" }: SoakOptions): Promise<SoakReport> {
  await using folder = await temporaryFolder();
  const delays = join(folder.path, "looks.ndjson");
  const limits = { argumentsMs: 300, idleMs: 60_000, closeMs: 5_000 };
  await using ambit = await startAmbit({ plugins: [{ use: loopWatch, config: { file: delays } }], limits });
  await using platform = await startPlatform();
  const unconfined = await confinement.missing();
  const sandboxPermission = { filesystem: "workspace", enforcement: "best_effort" };
  let counter = 0;
  const stage: Stage = {
    caller: ambit.caller,
    endpoint: platform.endpoint,
    boundary: unconfined === undefined ? { sandboxPermission } : {},
    next: () => {
      counter += 1;
      return counter;
    },
  };
  const isChosen = ([name]: readonly [string, unknown]) => name.includes(only);
  const hostile = Object.entries(hostileRuns).filter(isChosen);
  const normal = Object.entries(normalRuns).filter(isChosen);
  const kinds = [...hostile, ...weighted(normal, 4)];
  const runs: Record<string, number> = {};
  const surprises: string[] = [];
  const one = async ([name, run]: (typeof kinds)[number]) => {
    try {
      await run(stage);
      runs[name] = (runs[name] ?? 0) + 1;
    } catch (error) {
      surprises.push(`${name}: ${messageOf(error)}`);
    }
  };

  // Growth until each kind has run once isn't a leak.
  for (const kind of [...hostile, ...normal]) await one(kind);
  await pause(2_000);
  const { pid } = ambit.program;
  const before = vitalsOf(pid);
  const filesBefore = filesIn(ambit.dataFolder);
  const over = new AbortController();
  const watching = watch(pid, ambit.url, over.signal);
  const end = performance.now() + seconds * 1_000;
  const lane = async (offset: number) => {
    for (let turn = offset * 5; performance.now() < end; turn += 7) await one(at(kinds, turn));
  };
  await Promise.all(Array.from({ length: atOnce }, (_, offset) => lane(offset)));
  over.abort();
  const { max, healthMs } = await watching;
  const after = await settled(pid, before);
  return {
    seconds,
    atOnce,
    boundary: unconfined === undefined ? JSON.stringify(sandboxPermission) : undefined,
    runs,
    surprises,
    before,
    max,
    after,
    eventLoop: loopIn(delays),
    healthMs: {
      count: healthMs.length,
      p50: percentile(healthMs, 50),
      p99: percentile(healthMs, 99),
      max: Math.max(...healthMs),
    },
    files: { before: filesBefore, after: filesIn(ambit.dataFolder) },
  };
}

/** Waits until the server has as few processes and descriptors as before, or until the time is over. */
async function settled(pid: number, before: Vitals): Promise<Vitals> {
  const end = performance.now() + settlingMs;
  let now = vitalsOf(pid);
  while (
    performance.now() < end &&
    (now.processes > before.processes || now.descriptors > before.descriptors)
  ) {
    await pause(200);
    now = vitalsOf(pid);
  }
  return now;
}

function filesIn(folder: string): number {
  // It is created with the first session.
  return existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0;
}

function weighted<Item>(items: readonly Item[], times: number): Item[] {
  return Array.from({ length: times }, () => items).flat();
}

/** In rotation. 7 and the number of kinds have no common divisor, so each lane gets every kind. */
function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index % items.length];
  if (item === undefined) throw new Error("there are no kinds of runs");
  return item;
}
