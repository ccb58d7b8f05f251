import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { filesystem, runToEnd } from "@ambit/attacks/probe";
import type { StandardTrial } from "@ambit/attacks/standard-probe";
import type { Boundary, Command } from "@ambit/core/plugin";
import type { Claim } from "../claims.js";
import type { ConfinedSandbox } from "../confined/session.js";

export { expectThat, filesystem, NotProven } from "@ambit/attacks/probe";

export type LocalTrial = StandardTrial<ConfinedSandbox, Claim>;

/** Runs a command to its end. Every script prints a marker, so that one that never ran can't look refused. */
export async function runIn(
  sandbox: ConfinedSandbox,
  argv: Command["argv"],
  options: Partial<Command> = {},
): Promise<{ readonly stdout: string; readonly code: number | null }> {
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  const { stdout, exit } = await runToEnd(sandbox, { argv, env, ...options });
  return { stdout, code: exit.code };
}

/** No network, and a workspace that can be written. */
export const closedBoundary: Partial<Boundary> = {
  network: { mode: "off", rules: [] },
  filesystem: filesystem("workspace"),
};
/** The host's network, and a workspace that can only be read. */
export const readOnlyBoundary: Partial<Boundary> = { filesystem: filesystem("readonly") };
/** The host's network, and no workspace. */
export const emptyBoundary: Partial<Boundary> = { filesystem: filesystem("off") };

export const shell = (script: string): Command["argv"] => ["/bin/sh", "-c", script];
/** Without the variable that makes Node load an HTTP client for the proxy, which takes as long as its whole start. */
export const nodeInside = ["/usr/bin/env", "--unset=NODE_USE_ENV_PROXY", process.execPath] as const;

/** What a harmless command prints as the same user without a jail: a trial's control. */
export async function outcomeOnHost(
  [program, ...args]: Command["argv"],
  uid: unknown,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const user = process.getuid?.() === 0 && typeof uid === "number" ? { uid, gid: uid } : {};
  const { stdout } = await promisify(execFile)(program, args, {
    ...user,
    cwd: "/",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...environment },
    timeout: 10_000,
  });
  return stdout;
}
