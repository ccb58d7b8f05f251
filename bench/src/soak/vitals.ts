import { readdirSync } from "node:fs";
import { HttpCaller } from "../http.js";
import { descendantsOf, memoryMibOf } from "../machine/processes.js";
import { pause } from "../machine/program.js";

/** A server's state at one moment. */
export interface Vitals {
  readonly rssMib: number;
  readonly descriptors: number;
  /** Its running descendants. */
  readonly processes: number;
}

export function vitalsOf(pid: number): Vitals {
  return {
    rssMib: memoryMibOf(pid).rss,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    processes: descendantsOf(pid).length,
  };
}

function peakOf(one: Vitals, other: Vitals): Vitals {
  return {
    rssMib: Math.max(one.rssMib, other.rssMib),
    descriptors: Math.max(one.descriptors, other.descriptors),
    processes: Math.max(one.processes, other.processes),
  };
}

/** Samples the server and requests its health until the signal aborts. */
export async function watch(
  pid: number,
  url: string,
  signal: AbortSignal,
): Promise<{ readonly max: Vitals; readonly healthMs: readonly number[] }> {
  const caller = new HttpCaller(url);
  const healthMs: number[] = [];
  let max = vitalsOf(pid);
  while (!signal.aborted) {
    const begun = performance.now();
    const { status } = await caller.get("/health");
    healthMs.push(performance.now() - begun);
    if (status !== 200) throw new Error(`/health answered with ${status}`);
    max = peakOf(max, vitalsOf(pid));
    await pause(100);
  }
  caller.close();
  return { max, healthMs };
}

/** @param hundredths such as 99. */
export function percentile(values: readonly number[], hundredths: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * hundredths) / 100))] ?? Number.NaN;
}
