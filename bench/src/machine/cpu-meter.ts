import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { cpuMsOf } from "./processes.js";
import { pause } from "./program.js";

/** CPU milliseconds of a process and of all that it has started, those that ended included. */
export interface CpuMeter {
  ms(): number;
  /** Once the process has ended. */
  close(): Promise<void>;
}

/** Where the kernel counts CPU by group, and how it says so. */
const hierarchies = [
  { folder: "/sys/fs/cgroup/cpuacct", file: "cpuacct.usage", read: (text: string) => Number(text) / 1e6 },
  {
    folder: "/sys/fs/cgroup",
    file: "cpu.stat",
    read: (text: string) => Number(/^usage_usec (\d+)/m.exec(text)?.[1]) / 1e3,
  },
] as const;

let made = 0;

/**
 * Counts by a control group of the process's own where this user may make one. Elsewhere by what the process has
 * waited for, which leaves out what a jail's init has reaped.
 */
export function meterCpu(pid: number): CpuMeter & { readonly complete: boolean } {
  for (const { folder, file, read } of hierarchies) {
    if (!existsSync(`${folder}/${file}`)) continue;
    made += 1;
    const group = `${folder}/ambit-bench-${process.pid}-${made}`;
    try {
      mkdirSync(group);
      writeFileSync(`${group}/cgroup.procs`, String(pid));
    } catch {
      // Only root, or whom it was delegated to, may make groups.
      continue;
    }
    return {
      complete: true,
      ms: () => read(readFileSync(`${group}/${file}`, "latin1")),
      close: () => removed(group),
    };
  }
  return { complete: false, ms: () => cpuMsOf(pid), close: async () => undefined };
}

/** The kernel takes a moment to see that a group is empty. */
async function removed(group: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    try {
      rmdirSync(group);
      return;
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error) || error.code !== "EBUSY") throw error;
      await pause(20);
    }
  }
}
