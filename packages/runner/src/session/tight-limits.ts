import { HarnessFailed } from "@ambit/core";
import type { ResourceLimits } from "@ambit/core/plugin";

const units = [
  ["memoryMb", "MiB of memory"],
  ["processes", "processes and threads"],
  ["cpus", "processors"],
  ["diskMb", "MiB of disk"],
] as const satisfies readonly (readonly [keyof ResourceLimits, string])[];

/**
 * The same failure of an agent to start, with the limits that the request set: an agent that they are too small for
 * says nothing of them. Any other error as it is. Pure.
 */
export function namingLimits(thrown: unknown, limits: ResourceLimits): unknown {
  if (!(thrown instanceof HarnessFailed)) return thrown;
  const set = units.flatMap(([name, what]) => {
    const limit = limits[name];
    return limit === undefined ? [] : [`${limit} ${what} (resources.${name})`];
  });
  if (set.length === 0) return thrown;
  const hint = `The request allows it ${set.join(", ")}: if the agent needs more, raise that.`;
  return new HarnessFailed(`${thrown.message} ${hint}`, { cause: thrown });
}
