import type { GitCommand } from "./script.js";

/** A commit, and the tree of its files. */
export interface CommitIds {
  readonly commit: string;
  readonly tree: string;
}

/** Asks for the ids of the commit that a reference has. */
export function idsCommand(ref: string): GitCommand {
  return { args: ["rev-parse", `${ref}^{commit}`, `${ref}^{tree}`] };
}

/** Undefined where git printed something else. Pure. */
export function idsIn(output: Buffer | undefined): CommitIds | undefined {
  const printed = output?.toString("latin1") ?? "";
  const [, commit, tree] = /^([0-9a-f]{40}|[0-9a-f]{64})\n([0-9a-f]{40}|[0-9a-f]{64})\n$/.exec(printed) ?? [];
  return commit === undefined || tree === undefined ? undefined : { commit, tree };
}
