export interface Repetitions {
  /** Enough to show a leak at each repetition. */
  readonly short: number;
  /** With `AMBIT_SOAK=1`: enough to show rare failures. */
  readonly soak: number;
}

/** How often a test repeats what it checks for leaks and races. */
export function repetitions({ short, soak }: Repetitions): number {
  return process.env.AMBIT_SOAK ? soak : short;
}
