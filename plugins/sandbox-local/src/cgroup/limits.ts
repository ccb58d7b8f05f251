import type { ResourceLimits } from "@ambit/core/plugin";
import type { Controller } from "./hierarchy.js";

/** One value for one file of a group. `optional`: the kernel may lack the file (no swap accounting). */
export interface CgroupSetting {
  readonly file: string;
  readonly value: string;
  readonly optional?: true;
}

const mebibyte = 1024 * 1024;
const periodUs = 100_000;
/** The kernel's minimum quota. */
const minQuotaUs = 1_000;

/**
 * What to write to each controller for these limits, in order. Pure. Reference: the kernel's cgroup-v1 and cgroup-v2
 * documentation.
 */
export function settingsFor(
  limits: ResourceLimits,
  version: 1 | 2,
): Readonly<Partial<Record<Controller, readonly CgroupSetting[]>>> {
  const settings: Partial<Record<Controller, readonly CgroupSetting[]>> = {};
  if (limits.memoryMb !== undefined) {
    const bytes = String(limits.memoryMb * mebibyte);
    settings.memory =
      version === 2
        ? [
            { file: "memory.max", value: bytes },
            { file: "memory.swap.max", value: "0", optional: true },
          ]
        : [
            { file: "memory.limit_in_bytes", value: bytes },
            { file: "memory.memsw.limit_in_bytes", value: bytes, optional: true },
          ];
  }
  if (limits.processes !== undefined) settings.pids = [{ file: "pids.max", value: String(limits.processes) }];
  if (limits.cpus !== undefined) {
    const quota = String(Math.max(minQuotaUs, Math.round(limits.cpus * periodUs)));
    settings.cpu =
      version === 2
        ? [{ file: "cpu.max", value: `${quota} ${periodUs}` }]
        : [
            { file: "cpu.cfs_period_us", value: String(periodUs) },
            { file: "cpu.cfs_quota_us", value: quota },
          ];
  }
  return settings;
}
