import type { OutputsReceipt, OutputsRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { PatchedFile } from "../patch/git-patch.js";
import type { Spool } from "../spool/spool.js";

export type Pushed = NonNullable<OutputsReceipt["git"]>;

export interface PushOptions {
  readonly output: NonNullable<OutputsRequest["git"]>;
  readonly url: string;
  /** The commit that the workspace began with. */
  readonly base: string;
  /** With paths as they are in the repository; at least one. */
  readonly changes: readonly PatchedFile[];
  readonly spool: Spool;
  /** For git alone. */
  readonly sandbox: Sandbox;
  readonly maxFileBytes: number;
  readonly signal: AbortSignal;
}

/** @throws OutputsFailed; the signal's reason */
export type Push = (options: PushOptions) => Promise<Pushed>;
