import type { ActorGap, ResourceLimits } from "@ambit/core/plugin";
import type { DaytonaConfig } from "../config.js";

/** In the platform's units: cores, GiB, GiB. Absent fields aren't sent. */
export interface ResourceSettings {
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
}

const mibInGib = 1_024;

/** Without what `resourceGaps` reports, which the platform can't express. Pure. */
export function resourceSettings({ cpus, memoryMb, diskMb }: ResourceLimits): ResourceSettings {
  return {
    ...(cpus === undefined ? {} : { cpu: cpus }),
    ...(memoryMb === undefined ? {} : { memory: memoryMb / mibInGib }),
    ...(diskMb === undefined ? {} : { disk: diskMb / mibInGib }),
  };
}

export function resourceGaps(
  { cpus, memoryMb, diskMb, processes }: ResourceLimits,
  { image, maximum }: Pick<DaytonaConfig, "image" | "maximum">,
): readonly ActorGap[] {
  const kinds = [
    {
      capability: "resources.memory",
      field: "memoryMb",
      value: memoryMb,
      unit: mibInGib,
      max: maximum.memoryGib,
      what: "GiB of memory",
    },
    {
      capability: "resources.cpu",
      field: "cpus",
      value: cpus,
      unit: 1,
      max: maximum.cpus,
      what: "cores",
    },
    {
      capability: "resources.disk",
      field: "diskMb",
      value: diskMb,
      unit: mibInGib,
      max: maximum.diskGib,
      what: "GiB of disk",
    },
  ] as const;
  const gaps: ActorGap[] = [];
  for (const { capability, field, value, unit, max, what } of kinds) {
    if (value === undefined) continue;
    const below = Math.floor(value / unit) * unit;
    if (image === undefined) {
      gaps.push({
        capability,
        reason: "a sandbox made from a snapshot has the snapshot's size",
        fix: `set sandbox-daytona's image, leave ${field} out, or name the sandbox "local"`,
      });
    } else if (value % unit !== 0) {
      gaps.push({
        capability,
        reason: `Daytona accepts whole ${what}, not ${value / unit}`,
        fix: `set ${field} to ${below > 0 ? `${below} or ` : ""}${below + unit}`,
      });
    } else if (value > max * unit) {
      gaps.push({
        capability,
        reason: `the organisation allows one sandbox ${max} ${what}`,
        fix: `set ${field} to ${max * unit} at most, or raise sandbox-daytona's maximum with the organisation's limit`,
      });
    }
  }
  if (processes !== undefined) {
    gaps.push({
      capability: "resources.processes",
      reason: "Daytona can't limit processes",
      fix: 'leave processes out, or name the sandbox "local"',
    });
  }
  return gaps;
}
