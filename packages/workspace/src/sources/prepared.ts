import type { SourceReceipt } from "@ambit/core/contract";
import type { LeftOut, SourceEntry } from "./entry.js";

/** A source whose files are all at hand, before any of them is in a workspace. */
export interface PreparedSource {
  /** What the receipt says of it besides its files. */
  readonly facts: Pick<SourceReceipt, "url" | "archive" | "commit" | "tree" | "submodules">;
  /** Its files, once. */
  readonly entries: AsyncIterable<SourceEntry | LeftOut> | Iterable<SourceEntry>;
  /** Its `.git`, once: what git packs differs from one time to the next, so the digest leaves it out. */
  readonly repository?: AsyncIterable<SourceEntry>;
  /** Removes what it keeps on disk. */
  close(): Promise<void>;
}
