import { execa } from "execa";

/** In characters: enough of a program's last words for an error. */
const maxExcerptLength = 4_000;

export interface BuildProgramOptions {
  readonly cwd?: string;
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a program to its end. Rejects with the end of what it printed, or with the reason of an abort. */
export async function runProgram(
  program: string,
  argv: readonly string[],
  { cwd, env, signal }: BuildProgramOptions = {},
): Promise<void> {
  signal?.throwIfAborted();
  const {
    failed,
    all,
    signal: endedBy,
    exitCode,
    cause,
  } = await execa(program, argv, {
    cwd,
    env,
    stdin: "ignore",
    all: true,
    reject: false,
    // It removes its own temporary folders before it ends, which may take long.
    cancelSignal: signal,
    forceKillAfterDelay: false,
  });
  signal?.throwIfAborted();
  // It couldn't be started.
  if (exitCode === undefined && endedBy === undefined && cause !== undefined) throw cause;
  if (failed)
    throw new Error(
      `${program} failed (${endedBy ?? `exit code ${exitCode}`}):\n${all.slice(-maxExcerptLength).trim()}`,
    );
}
