import { setTimeout as delay } from "node:timers/promises";
import { HarnessFailed } from "@ambit/core";
import type { Warning } from "@ambit/core/contract";
import type { LimitHits, ResourceLimits, Sandbox } from "@ambit/core/plugin";

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
  const hint = limitsHint(limits);
  return hint === "" ? thrown : new HarnessFailed(`${thrown.message}${hint}`, { cause: thrown });
}

/** What a request's limits add to a message about a start: a sentence after a space, or nothing. Pure. */
export function limitsHint(limits: ResourceLimits): string {
  const set = units.flatMap(([name, what]) => {
    const limit = limits[name];
    return limit === undefined ? [] : [`${limit} ${what} (resources.${name})`];
  });
  return set.length === 0
    ? ""
    : ` The request allows it ${set.join(", ")}: if the agent needs more, raise that.`;
}

/** A warning for a turn in which the system killed processes for the memory of all; undefined where it killed none. Pure. */
export function memoryWarning(
  before: LimitHits | undefined,
  after: LimitHits | undefined,
  { memoryMb }: ResourceLimits,
): Warning | undefined {
  const killed = (after?.memory ?? 0) - (before?.memory ?? 0);
  if (killed <= 0) return undefined;
  const limit =
    memoryMb === undefined ? "its sandbox's limit" : `the limit of ${memoryMb} MiB (resources.memoryMb)`;
  const subject = killed === 1 ? "A process was" : `${killed.toLocaleString("en")} processes were`;
  return {
    path: "sandboxPermission.resources.memoryMb",
    message: `${subject} killed in this turn, as the session's processes together reached ${limit}. A command that ended with exit code 137 or by SIGKILL may be one of them: raise the limit, or run less at once.`,
  };
}

/** Milliseconds between two looks at the limits, and from a thread that was refused to the end of the start. */
const times = { lookMs: 250, graceMs: 10_000 };

/**
 * A start that ends if it waits for a thread that its limit doesn't allow: Node.js then waits forever without a message.
 *
 * @throws HarnessFailed that names the limit
 */
export async function unlessStarved<Result>(
  sandbox: Sandbox,
  { processes }: ResourceLimits,
  start: () => Promise<Result>,
  { lookMs, graceMs } = times,
): Promise<Result> {
  const before = sandbox.limitHits?.().processes;
  if (processes === undefined || before === undefined) return await start();
  const ended = new AbortController();
  const { signal } = ended;
  const starved = async (): Promise<never> => {
    while (sandbox.limitHits?.().processes === before) await delay(lookMs, undefined, { signal });
    await delay(graceMs, undefined, { signal });
    throw new HarnessFailed(
      `The agent didn't start within ${graceMs / 1_000} s after it was refused a process or thread: the session's limit of ${processes} processes and threads (resources.processes) is reached, by all its processes together and three or four of each jail's own. Raise it.`,
    );
  };
  try {
    return await Promise.race([start(), starved()]);
  } finally {
    ended.abort();
  }
}
