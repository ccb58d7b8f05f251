/** One program of a developer's, and a piece of ordinary work with it, as a shell does it in a folder of its own. */
export interface Program {
  /** For the table: its name, and what it does in the test. */
  readonly name: string;
  readonly does: string;
  /** Programs that the host must have, on a plain path or in the toolchains that the test shows. */
  readonly needs: readonly string[];
  /** What else the host must have: a command that succeeds on it. */
  readonly has?: string;
  readonly script: string;
  /** In what the script prints. */
  readonly prints: RegExp;
}

/** The same, for what a jail refuses on purpose. */
export interface RefusedProgram extends Program {
  /** For the table: why, and what to do instead. */
  readonly instead: string;
}
