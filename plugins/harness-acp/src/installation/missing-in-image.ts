import { HarnessFailed, type Sandbox } from "@ambit/core/plugin";
import type { PlacedProgram } from "./place-program.js";

/** Milliseconds for the look, after a start that has failed already. */
const checkTimeoutMs = 10_000;

export interface ExpectedInImage {
  readonly title: string;
  /** How its program gets there. */
  readonly fix: string;
}

/** What a start failed with: that the image lacks the program, if it does; else the error as it is. */
export async function namingMissing(
  error: unknown,
  sandbox: Sandbox,
  { argv: [program], searchPath }: PlacedProgram,
  { title, fix }: ExpectedInImage,
): Promise<unknown> {
  try {
    const look = await sandbox.spawn({
      argv: ["/bin/sh", "-c", 'command -v -- "$0" >/dev/null', program],
      env: { PATH: searchPath },
      signal: AbortSignal.timeout(checkTimeoutMs),
    });
    const { code } = await look.exit;
    if (code === 0 || code === null) return error;
  } catch {
    // The sandbox can't tell: then the start's own error says more.
    return error;
  }
  return new HarnessFailed(`${title} isn't in the sandbox's image, which has no "${program}": ${fix}.`, {
    cause: error,
  });
}
