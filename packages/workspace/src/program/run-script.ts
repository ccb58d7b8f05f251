import type { Sandbox } from "@ambit/core/plugin";
import { searchPathOf } from "./inside-program.js";
import { endOf } from "./streams.js";

export interface ScriptOptions {
  /** Further variables: the agent's aren't set. */
  readonly env?: Readonly<Record<string, string>>;
  /** The last characters of each stream that are kept. */
  readonly maxCharacters: number;
  readonly signal: AbortSignal;
}

export interface ScriptResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Null where a signal ended it. */
  readonly code: number | null;
}

/** Runs a script of Ambit's own with the sandbox's shell, as the agent's user. @throws SandboxFailed; the signal's reason */
export async function runScript(
  sandbox: Sandbox,
  script: string,
  args: readonly string[],
  { env = {}, maxCharacters, signal }: ScriptOptions,
): Promise<ScriptResult> {
  const child = await sandbox.spawn({
    argv: ["/bin/sh", "-c", script, "sh", ...args],
    env: { PATH: searchPathOf(sandbox), LC_ALL: "C", ...env },
    role: "agent",
    signal,
  });
  const [stdout, stderr, { code }] = await Promise.all([
    endOf(child.stdout, maxCharacters),
    endOf(child.stderr, maxCharacters),
    child.exit,
    child.stdin.close().catch(() => {}),
  ]);
  signal.throwIfAborted();
  return { stdout, stderr, code };
}
