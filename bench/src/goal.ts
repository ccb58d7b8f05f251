/** The upper or lower limit of a figure. */
export type Limit = { readonly atMost: number } | { readonly atLeast: number };

/** One measured figure: a ratio of interleaved pairs, or a quantity. */
export interface GoalMeasurement {
  /** The two sides of the comparison: "refusal ÷ raw POST". */
  readonly what: string;
  readonly unit: "×" | "ms" | "MiB" | "/s" | "count";
  /** One value for each pair, or each time it was taken. */
  readonly values: readonly number[];
  /** Absent: for information only. */
  readonly limit?: Limit;
  /** The medians of a ratio, and other information for readers. */
  readonly note?: string;
  /** Its place in the plot: the row, and which of its marks. */
  readonly point?: { readonly label: string; readonly series: string };
}

export interface GoalOptions {
  /** The number of interleaved pairs: the goal's usual one, unless the caller of the bench gives another. */
  pairs(usual: number): number;
  /** Whether packages to compare with may be installed from npm, into the cache. */
  readonly peers: boolean;
  /** An earlier revision of Ambit to compare with. Default: none. */
  readonly before?: string | undefined;
  /** Reports progress on stderr. */
  progress(text: string): void;
}

/** A requirement that a machine may lack. */
export interface Need {
  /** Why the goal can't be measured here; undefined when it can. */
  missing(): Promise<string | undefined>;
}

export interface Goal {
  /** As in the list of goals: `G4`. */
  readonly id: string;
  readonly title: string;
  /** The goal in words: "≤ 6". */
  readonly goal: string;
  readonly needs: readonly Need[];
  run(options: GoalOptions): Promise<readonly GoalMeasurement[]>;
}
