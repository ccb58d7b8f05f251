/** A file of a source. */
export interface SourceEntry {
  /** Relative to the source's folder; checked. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable: boolean;
}

/** What can't be put into a workspace. */
export interface LeftOut {
  readonly leftOut: string;
  readonly reason: "link" | "special" | "name";
}
