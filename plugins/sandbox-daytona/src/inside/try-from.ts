import type { DaytonaConfig } from "../config.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import { type Attempt, type Outcomes, outcomesSchema } from "./attempts.js";
import { type InsideProgram, lastJson, programLine } from "./programs.js";

/** Milliseconds for Node.js to start in a new sandbox. */
const startMs = 20_000;

/** Makes attempts from inside a sandbox, all at once, through the platform's own access. */
export async function tryFrom(
  machine: Machine,
  attempts: readonly Attempt[],
  { bridge, canary }: Pick<DaytonaConfig, "bridge" | "canary">,
): Promise<Outcomes> {
  const input = { attempts, limitMs: canary.attemptMs };
  return outcomesSchema.parse(await runInside(machine, bridge.node, "attempts", input, canary.attemptMs));
}

/** @param limitMs in addition to the time that Node.js needs to start. */
export async function runInside(
  machine: Machine,
  node: string,
  program: InsideProgram,
  input: unknown,
  limitMs: number,
): Promise<unknown> {
  const line = shellLine(await programLine(node, program, input));
  const patientMs = startMs + limitMs;
  // It only reads, so it is retried after a lost response.
  const { exitCode, output } = await withRetries(() => machine.execute(line, patientMs), {
    retries: 3,
    limitMs: patientMs,
  });
  if (exitCode !== 0)
    throw new Error(`${node} ended with ${exitCode} in the sandbox: ${output.trim().slice(0, 200)}`);
  return lastJson(output);
}
