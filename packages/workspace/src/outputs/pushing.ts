import type { GitReceipt, OutputsRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { PatchedFile } from "../patch/git-patch.js";
import type { Spool } from "../spool.js";

export type Pushed = GitReceipt;

/** Signs a commit's bytes as `ssh-keygen -Y sign` does. Its key stays outside every sandbox. @returns in PEM */
export type Sign = (commit: Buffer) => string;

export interface PushOptions {
  readonly output: NonNullable<OutputsRequest["git"]>;
  readonly url: string;
  /** The commit that the workspace began with. */
  readonly base: string;
  /** Whether an earlier run of the session left files that may not be in it, such as ignored ones. */
  readonly isContinued: boolean;
  /** With paths as they are in the repository; at least one. */
  readonly changes: readonly PatchedFile[];
  readonly spool: Spool;
  /** For git alone. */
  readonly sandbox: Sandbox;
  readonly maxFileBytes: number;
  /** When the commit is made, in milliseconds since 1970. */
  readonly at: number;
  /** Undefined: it isn't signed. */
  readonly sign: Sign | undefined;
  /** Keeps the commit as a bundle of git. */
  readonly keep: (bundle: AsyncIterable<Uint8Array>) => Promise<Pushed["bundle"]>;
  readonly signal: AbortSignal;
}

/** Undefined where nothing of the repository changed. @throws OutputsFailed; the signal's reason */
export type Push = (options: PushOptions) => Promise<Pushed | undefined>;

/** Undefined where the output asks for none. @throws OutputsFailed; the signal's reason */
export type OpenPullRequest = (
  output: PushOptions["output"],
  pushed: Pushed,
  signal: AbortSignal,
) => Promise<Pushed["pullRequest"]>;
