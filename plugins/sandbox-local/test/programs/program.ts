/** One program that developers use, and an ordinary task for it, run by a shell in a separate folder. */
export interface Program {
  /** For the table: its name, and what it does in the test. */
  readonly name: string;
  readonly does: string;
  /** Programs that the host must have, on a plain path or in the toolchains that the test shows. */
  readonly needs: readonly string[];
  /** What else the host must have: a command that succeeds if it does. */
  readonly has?: string;
  readonly script: string;
  /** Must be in the script's output. */
  readonly prints: RegExp;
}

/** The same, for what a jail refuses by design. */
export interface RefusedProgram extends Program {
  /** For the table: why, and what to do instead. */
  readonly instead: string;
}
