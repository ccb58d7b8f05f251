import { spawn } from "node:child_process";
import { once } from "node:events";

/** In characters: enough of a program's last words for an error. */
const maxExcerptLength = 4_000;

export interface BuildProgramOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a program to its end. Rejects with the end of what it printed, or with the reason of an abort. */
export async function runProgram(
  program: string,
  argv: readonly string[],
  { cwd, env, signal }: BuildProgramOptions = {},
): Promise<void> {
  signal?.throwIfAborted();
  const child = spawn(program, argv, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let excerpt = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      excerpt = (excerpt + text).slice(-maxExcerptLength);
    });
  }
  // It removes its own temporary folders before it ends.
  const end = () => child.kill("SIGTERM");
  signal?.addEventListener("abort", end);
  try {
    const [code, killedBy] = await once(child, "close");
    signal?.throwIfAborted();
    if (code !== 0)
      throw new Error(`${program} failed (${killedBy ?? `exit code ${code}`}):\n${excerpt.trim()}`);
  } finally {
    signal?.removeEventListener("abort", end);
  }
}
