import { lstat } from "node:fs/promises";
import { isAbsolute, join, normalize, relative } from "node:path";
import { readGit } from "../git.js";

/** Settings of git whose values it runs, or reads further settings from. */
const running =
  /^(core\.(hookspath|fsmonitor|sshcommand|gitproxy|editor|pager|askpass|alternaterefscommand)|include\.path|includeif\..*\.path|alias\..*|filter\..*|diff\..*|merge\..*|difftool\..*|mergetool\..*|pager\..*|credential\..*|gpg\..*|sequence\.editor|interactive\.difffilter|trailer\..*|hook\..*|tar\..*|sendemail\..*|uploadpack\.packobjectshook)$/;

/** Settings whose value is a path, and nothing else. */
const naming = /^(core\.hookspath|include\.path|includeif\..*\.path)$/;

export interface NamedPaths {
  /** They are there, so the agent can be kept from changing them. */
  readonly present: readonly string[];
  readonly missing: readonly string[];
}

/**
 * Paths of the folder that the user's git runs, or takes settings from, when it is used there: such as a hooks path in the
 * project. Outside of a repository there are none.
 */
export async function guardedPaths(folder: string): Promise<NamedPaths> {
  const listed = await readGit(folder, ["config", "--list", "--includes", "--show-origin", "-z"]).catch(
    () => "",
  );
  const parts = listed.split("\0");
  /** The value says whether the word is certainly a path. */
  const named = new Map<string, boolean>();
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [origin = "", setting = ""] = parts.slice(at, at + 2);
    if (origin.startsWith("file:")) named.set(origin.slice("file:".length), true);
    const end = setting.indexOf("\n");
    const key = setting.slice(0, Math.max(0, end));
    if (!running.test(key)) continue;
    const value = setting.slice(end + 1);
    if (naming.test(key)) {
      named.set(value, true);
      // Further settings are named from where `.git/config` is.
      if (key !== "core.hookspath") named.set(join(".git", value), true);
      continue;
    }
    // Any word of a command may be a file of the folder; a plain one that isn't there is the command's own.
    for (const word of value.split(/[\s"';|&]+/)) named.set(word, word.includes("/"));
  }
  const [present, missing] = [new Set<string>(), new Set<string>()];
  for (const [path, isPath] of named) {
    const below = (isAbsolute(path) ? relative(folder, path) : normalize(path)).replace(/\/$/, "");
    const isOutside = below === "" || below === "." || below.startsWith("..") || isAbsolute(below);
    if (isOutside || /^\.git(\/|$)/.test(below)) continue;
    const isThere = (await lstat(join(folder, below)).catch(() => undefined)) !== undefined;
    if (isThere) present.add(below);
    else if (isPath) missing.add(below);
  }
  return { present: [...present].sort(), missing: [...missing].sort() };
}
