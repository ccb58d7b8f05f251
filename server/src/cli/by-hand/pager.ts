import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Whether so many lines, and a question below them, fit the terminal. */
export function fitsScreen(lines: number, { rows }: { readonly rows?: number } = process.stdout): boolean {
  // A terminal that doesn't know its size has none, or 0.
  return lines < (rows || 24);
}

/**
 * Shows lines in the user's pager (`PAGER`, by default `less`), until they leave it. Empty, or `cat`, means none.
 * @param signal ends it
 * @returns false without a pager, or where it can't be started
 */
export async function showInPager(
  lines: AsyncIterable<string>,
  signal?: AbortSignal,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<boolean> {
  const pager = environment.PAGER ?? "less";
  if (pager === "" || pager === "cat" || process.platform === "win32") return false;
  // With what git gives `less`: it shows colours, and leaves a short text on the screen.
  const { execa } = await import("execa");
  const shown = execa("/bin/sh", ["-c", pager], {
    env: { LESS: "FRX", ...environment },
    extendEnv: false,
    stdin: "pipe",
    stdout: "inherit",
    stderr: "inherit",
    reject: false,
    cancelSignal: signal,
    // Ctrl-C is the pager's, and the command's own handlers'.
    cleanup: false,
  });
  // It needn't read all of it.
  await pipeline(Readable.from(lines), shown.stdin).catch(() => undefined);
  const { exitCode: code } = await shown;
  // A shell's way to say that there is no such program.
  return code !== 127 && code !== 126;
}
