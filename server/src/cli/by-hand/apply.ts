import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, open, rename, rm } from "node:fs/promises";
import { inFolder, type OpenFolder, openBeneath } from "@ambit/backend-kit/safe-fs";
import type { OutputChange } from "@ambit/core/contract";
import { codeOf } from "@ambit/core/plugin";
import { openParent } from "./local-file.js";

/** What stands at a path of the user's folder. */
type Present =
  | { readonly kind: "file"; readonly sha256: string; readonly mode: number }
  | { readonly kind: "missing" }
  /** No regular file, or it can't be read or reached without a link. */
  | { readonly kind: "other" };

/** A path that isn't as it was when the run began. */
export interface Conflict {
  readonly path: string;
  readonly reason: string;
}

/**
 * Compares the user's folder with what the run began with. Nothing is applied as long as there is a conflict.
 * @returns those of all changes.
 */
export async function conflictsIn(
  folder: string,
  changes: readonly OutputChange[],
): Promise<readonly Conflict[]> {
  const conflicts: Conflict[] = [];
  for (const change of changes) {
    const reason = whyConflict(change, await presentAt(folder, change.path));
    if (reason !== undefined) conflicts.push({ path: change.path, reason });
  }
  return conflicts;
}

/** Pure. */
export function whyConflict(change: OutputChange, present: Present): string | undefined {
  if (present.kind === "other") return "it is a link or no regular file";
  // The same change, made meanwhile, is no conflict.
  if (change.change !== "deleted" && present.kind === "file" && present.sha256 === change.sha256)
    return undefined;
  if (change.change === "added") return present.kind === "missing" ? undefined : "it exists meanwhile";
  if (present.kind === "missing") return change.change === "deleted" ? undefined : "it was deleted meanwhile";
  return present.sha256 === change.before ? undefined : "it was changed meanwhile";
}

/**
 * Applies one change, without following a link.
 * @param content of a file that isn't deleted
 * @returns why it wasn't, where the path isn't as it was any more
 */
export async function applyChange(
  folder: string,
  change: OutputChange,
  content: AsyncIterable<Uint8Array>,
): Promise<string | undefined> {
  const names = change.path.split("/");
  const name = names.pop() ?? "";
  const isDeletion = change.change === "deleted";
  if (isDeletion && (await presentAt(folder, change.path)).kind === "missing") return undefined;
  const parent = await openBeneath(folder, names, isDeletion ? undefined : { owner: undefined });
  try {
    if (!isDeletion) return await replace(parent, name, change, content);
    const reason = whyConflict(change, await presentIn(parent, name));
    if (reason === undefined) await rm(inFolder(parent, name), { force: true });
    return reason;
  } finally {
    await parent.handle.close();
  }
}

async function replace(
  parent: OpenFolder,
  name: string,
  change: Exclude<OutputChange, { change: "deleted" }>,
  content: AsyncIterable<Uint8Array>,
): Promise<string | undefined> {
  const executable = change.executable === true;
  const draft = inFolder(parent, `.ambit-${randomBytes(8).toString("hex")}`);
  try {
    const handle = await open(draft, "wx", executable ? 0o755 : 0o644);
    try {
      for await (const bytes of content) await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    // Again: other changes, and this content, took their time.
    const present = await presentIn(parent, name);
    const reason = whyConflict(change, present);
    // As private as it was.
    if (present.kind === "file")
      await chmod(draft, executable ? present.mode | 0o100 : present.mode & ~0o111);
    if (reason === undefined) await rename(draft, inFolder(parent, name));
    else await rm(draft);
    return reason;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function presentAt(folder: string, path: string): Promise<Present> {
  const names = path.split("/");
  const name = names.pop() ?? "";
  let parent: OpenFolder;
  try {
    parent = await openParent(folder, names);
  } catch (error) {
    return { kind: codeOf(error) === "ENOENT" ? "missing" : "other" };
  }
  try {
    return await presentIn(parent, name);
  } finally {
    await parent.handle.close();
  }
}

async function presentIn(parent: OpenFolder, name: string): Promise<Present> {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(inFolder(parent, name), flags);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return { kind: "other" };
      const hash = createHash("sha256");
      for await (const bytes of handle.createReadStream({ autoClose: false })) hash.update(bytes);
      return { kind: "file", sha256: hash.digest("hex"), mode: stats.mode & 0o777 };
    } finally {
      await handle.close();
    }
  } catch (error) {
    return { kind: codeOf(error) === "ENOENT" ? "missing" : "other" };
  }
}
