/** What the runner asks of the program inside. Travels as JSON. */
export interface Wish {
  /** Absolute, as seen inside. */
  readonly workspace: string;
  readonly include: readonly string[];
  /** Whether what differs from `known` leaves too. */
  readonly patch: boolean;
  /** What was there at the start: each path with its state. */
  readonly known: readonly (readonly [path: string, state: string])[];
  readonly maxFiles: number;
  readonly maxBytes: number;
  /** Files and folders that are looked at. */
  readonly maxEntries: number;
}

/**
 * What the program inside answers, one line of JSON each. The content of a file follows its line in chunks: a line with the
 * number of bytes and then the bytes; 0 ends it. None of it can be trusted: the sandbox's processes may have changed it.
 */
export type WishAnswer =
  | {
      readonly type: "file";
      readonly path: string;
      readonly executable: boolean;
      /** Whether `include` matches it. */
      readonly included: boolean;
    }
  /** Ends a file. Not `whole`: it was written to meanwhile. */
  | { readonly type: "end"; readonly whole: boolean }
  | { readonly type: "deleted"; readonly path: string }
  | {
      readonly type: "omitted";
      readonly path: string;
      readonly reason: "link" | "hard_link" | "special" | "name" | "unreadable" | "too_large" | "too_many";
      /** Changes when what is there does. */
      readonly state: string;
    }
  /** There are more than `maxEntries` files and folders. */
  | { readonly type: "too_many_entries" }
  | { readonly type: "done" };

/** The state of a regular file, as `Wish.known` has it. */
export function stateOf(digest: string, executable: boolean): string {
  return executable ? `x:${digest}` : digest;
}
