import * as kit from "@ambit/backend-kit";
import type { Boundary, Command, ConnectionDecision, HiddenCredential } from "@ambit/core/plugin";
import type { Claim } from "../claims.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { OpenOptions } from "../confined/session.js";

export { expectThat, filesystem, NotProven, unlimitedBoundary } from "@ambit/backend-kit";

/** What a trial may do: open sandboxes of the probed backend, which are closed afterwards. */
export interface Bench {
  open(boundary: Partial<Boundary>, options?: BenchOptions): Promise<ConfinedSandbox>;
  readonly signal: AbortSignal;
}

export interface BenchOptions extends OpenOptions {
  readonly secrets?: readonly HiddenCredential[];
  readonly onDecision?: (decision: ConnectionDecision) => void;
}

export type Trial = kit.Trial<Bench, Claim>;

/** Runs a command to its end. Every script prints a marker, so that one that never ran can't look refused. */
export async function runIn(
  sandbox: ConfinedSandbox,
  argv: Command["argv"],
  options: Partial<Command> = {},
): Promise<{ readonly stdout: string; readonly code: number | null }> {
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  const { stdout, exit } = await kit.runToEnd(sandbox, { argv, env, ...options });
  return { stdout, code: exit.code };
}

export const shell = (script: string): Command["argv"] => ["/bin/sh", "-c", script];
export const node = (script: string, ...args: string[]): Command["argv"] => [
  process.execPath,
  "-e",
  script,
  ...args,
];
