import type { GitCommand } from "../program/script.js";

const submoduleMode = "160000";
const nothing = "000000";

/**
 * Lists what each commit changed, of a merge against its first parent. The oldest commits, whose parents weren't fetched, have
 * changed nothing.
 */
export function changesCommand(ref: string, maxOutput: number): GitCommand {
  const how = ["--raw", "-r", "-z", "--no-abbrev", "--no-renames", "--diff-merges=first-parent"];
  return { args: ["-c", "log.showRoot=false", "log", "--format=", ...how, ref, "--"], maxOutput };
}

const change = /^:(\d{6}) (\d{6}) ([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) [A-Z]$/;

/**
 * The contents before and after each change: with them, any two of the commits can be compared. Each change is two texts, what
 * it is and its path.
 *
 * @throws Error for anything else than such a list
 */
export function changedContents(listed: Buffer): ReadonlySet<string> {
  const ids = new Set<string>();
  for (let at = 0; at < listed.length; ) {
    const end = listed.indexOf(0, at);
    const next = listed.indexOf(0, end + 1);
    const [, before, after, old, fresh] = change.exec(listed.toString("latin1", at, Math.max(at, end))) ?? [];
    if (
      next <= end ||
      before === undefined ||
      after === undefined ||
      old === undefined ||
      fresh === undefined
    )
      throw new Error("a list of changes that can't be read");
    if (before !== nothing && before !== submoduleMode) ids.add(old);
    if (after !== nothing && after !== submoduleMode) ids.add(fresh);
    at = next + 1;
  }
  return ids;
}
