import { type Attempts, lookProgram, type Reached, readLook } from "@ambit/attacks/inside";
import type { DaytonaConfig } from "../config.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";

/** Milliseconds for Node.js to start in a new sandbox. */
const startMs = 20_000;

/** Makes attempts from inside a sandbox, all at once, through the platform's own access. */
export async function tryFrom(
  machine: Machine,
  attempts: Attempts,
  { bridge, canary }: Pick<DaytonaConfig, "bridge" | "canary">,
): Promise<Reached> {
  return readLook(await outputOn(machine, await lookProgram(bridge.node, attempts), canary.attemptMs));
}

/**
 * What a program prints that only reads.
 *
 * @param limitMs in addition to the time that Node.js needs to start.
 */
export async function outputOn(
  machine: Machine,
  argv: readonly [string, ...string[]],
  limitMs: number,
): Promise<string> {
  const totalMs = startMs + limitMs;
  // It only reads, so it is retried after a lost response.
  const { exitCode, output } = await withRetries(() => machine.execute(shellLine(argv), totalMs), {
    retries: 3,
    limitMs: totalMs,
  });
  if (exitCode !== 0)
    throw new Error(`${argv[0]} ended with ${exitCode} in the sandbox: ${output.trim().slice(0, 200)}`);
  return output;
}
