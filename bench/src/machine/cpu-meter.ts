import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { cpuMsOf } from "./processes.js";
import { pause } from "./program.js";

/** CPU milliseconds of a process and of everything that it has started, including ended processes. */
export interface CpuMeter {
  ms(): number;
  /** Called after the process has ended. */
  close(): Promise<void>;
}

/** Where the kernel counts CPU time by group, and the file format. */
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
 * Uses a separate control group for the process if this user may create one. Otherwise it uses the children that the
 * process has waited for, which excludes what a jail's init has reaped.
 */
export function meterCpu(pid: number): CpuMeter & { readonly complete: boolean } {
  return meterGroup([pid]) ?? { complete: false, ms: () => cpuMsOf(pid), close: async () => undefined };
}

/** CPU of several processes and of all that they start from now on. Undefined if no control group can be created. */
export function meterGroup(pids: readonly number[]): (CpuMeter & { readonly complete: true }) | undefined {
  for (const { folder, file, read } of hierarchies) {
    if (!existsSync(`${folder}/${file}`)) continue;
    made += 1;
    const group = `${folder}/ambit-bench-${process.pid}-${made}`;
    try {
      mkdirSync(group);
      for (const pid of pids) writeFileSync(`${group}/cgroup.procs`, String(pid));
    } catch {
      // Only root, or a user with a delegated group, may create groups.
      continue;
    }
    return {
      complete: true,
      ms: () => read(readFileSync(`${group}/${file}`, "latin1")),
      close: () => removed(group),
    };
  }
  return undefined;
}

/** CPU milliseconds of an existing control group and its descendants. Undefined if the kernel doesn't count them. */
export function cpuOfGroup(name: string): (() => number) | undefined {
  const found = hierarchies.find(({ folder, file }) => existsSync(`${folder}/${name}/${file}`));
  if (found === undefined) return undefined;
  const { folder, file, read } = found;
  return () => read(readFileSync(`${folder}/${name}/${file}`, "latin1"));
}

/** Retries: the kernel needs a moment to notice that a group is empty. */
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
