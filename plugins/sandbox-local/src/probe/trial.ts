import * as kit from "@ambit/backend-kit";
import type {
  Boundary,
  Command,
  ConnectionDecision,
  HiddenCredential,
  RequiredPath,
} from "@ambit/core/plugin";
import type { Claim } from "../claims.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { OpenOptions } from "../confined/session.js";

export { expectThat, filesystem, NotProven, unlimitedBoundary } from "@ambit/backend-kit";

/** What a trial may do: open sandboxes of the probed backend, which are closed afterwards. */
export interface Bench {
  open(boundary: Partial<Boundary>, options?: BenchOptions): Promise<ConfinedSandbox>;
  /** One sandbox of this kind for all trials, closed after the last one. Only for processes that end with their trial. */
  shared(boundary: Partial<Boundary>): Promise<ConfinedSandbox>;
  readonly signal: AbortSignal;
}

export interface BenchOptions extends OpenOptions {
  readonly secrets?: readonly HiddenCredential[];
  readonly onDecision?: (decision: ConnectionDecision) => void;
  readonly requiredPaths?: readonly RequiredPath[];
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

/** No network, and a workspace that can be written. */
export const closedBoundary: Partial<Boundary> = {
  network: { mode: "off", rules: [] },
  filesystem: kit.filesystem("workspace"),
};
/** The host's network, and a workspace that can only be read. */
export const readOnlyBoundary: Partial<Boundary> = { filesystem: kit.filesystem("readonly") };
/** The host's network, and no workspace. */
export const emptyBoundary: Partial<Boundary> = { filesystem: kit.filesystem("off") };

export const shell = (script: string): Command["argv"] => ["/bin/sh", "-c", script];
/** Without the variable that makes Node load an HTTP client for the proxy, which takes as long as its whole start. */
export const node = (script: string, ...args: string[]): Command["argv"] => [
  "/usr/bin/env",
  "--unset=NODE_USE_ENV_PROXY",
  process.execPath,
  "-e",
  script,
  ...args,
];
