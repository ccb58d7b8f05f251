/** What the runner asks of the program inside. Travels as JSON. */
export interface Wish {
  /** Absolute, as seen inside. */
  readonly workspace: string;
  readonly include: readonly string[];
  /** Whether what differs from `known` leaves too. */
  readonly patch: boolean;
  /** Each path that was there at the start, with its state. */
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

/** What the runner asks to see of a workspace: one folder, or one file. Travels as JSON. */
export interface LookWish {
  readonly look: "folder" | "file";
  /** Absolute, as seen inside. */
  readonly workspace: string;
  /** Path of a folder or file in it: `src/app.ts`. Empty: the workspace itself. */
  readonly path: string;
  /** Names of a folder that are listed. */
  readonly maxEntries: number;
  /** Bytes of a file that is sent. */
  readonly maxBytes: number;
}

export type EntryKind = "folder" | "file" | "link" | "special";

/** What the program inside answers; a file's content and its end follow as in `WishAnswer`. None of it can be trusted. */
export type LookAnswer =
  | ({ readonly type: "entry"; readonly name: string } & EntryFacts)
  /** Ends a folder. Not `whole`: it has more names, or some that aren't text. */
  | { readonly type: "listed"; readonly whole: boolean }
  | ({ readonly type: "content" } & Omit<EntryFacts, "kind">)
  | { readonly type: "refused"; readonly reason: LookRefusal };

export interface EntryFacts {
  readonly kind: EntryKind;
  readonly size: number;
  /** Milliseconds since 1970: 0 to `latestMs`. */
  readonly modifiedAt: number;
  readonly executable: boolean;
}

/** The end of the year 9999, the last that dates of four digits have. */
export const latestMs = 253_402_300_799_999;

export type LookRefusal =
  | "missing"
  | "link"
  | "hard_link"
  | "special"
  | "folder"
  | "not_folder"
  | "unreadable"
  | "too_large";

/** How many characters a line of a terminal has, and how many lines it shows. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** What the runner asks of a terminal that is open. Travels as a line of JSON. */
export type TerminalOrder = { readonly input: string } | TerminalSize;
