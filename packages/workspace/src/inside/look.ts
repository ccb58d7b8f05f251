import { closeSync, fstatSync, lstatSync, type Stats } from "node:fs";
import { answer, sendContent } from "./answers.js";
import {
  closeFolder,
  type Folder,
  inFolder,
  isSame,
  namesIn,
  openBelow,
  openFile,
  openFolder,
  textOf,
} from "./folder.js";
import { isGitFolder } from "./paths.js";
import { type EntryKind, type LookRefusal, type LookWish, latestMs } from "./wish.js";

/** Shows it with the rights of the sandbox's processes, through descriptors and without following a link on the way. */
export function look({ look: what, workspace, path, maxEntries, maxBytes }: LookWish): undefined {
  const names = path === "" ? [] : path.split("/").map((name) => Buffer.from(name));
  const last = what === "file" ? names.pop() : undefined;
  let folder: Folder;
  try {
    folder = openBelow(openFolder(Buffer.from(workspace)), names);
  } catch (error) {
    return refuse(isMissing(error) ? "missing" : isDenied(error) ? "unreadable" : "not_folder");
  }
  try {
    if (last === undefined) listFolder(folder, maxEntries);
    else sendFile(folder, last, maxBytes);
  } finally {
    closeFolder(folder);
  }
}

function listFolder(folder: Folder, maxEntries: number): undefined {
  let names: readonly Buffer[];
  try {
    names = namesIn(folder, () => {}, maxEntries + 1);
  } catch {
    return refuse("unreadable");
  }
  let whole = names.length <= maxEntries;
  for (const name of names.slice(0, maxEntries)) {
    const text = textOf(name);
    if (text !== undefined && isGitFolder(text)) continue;
    const stats = statsOf(folder, name);
    if (text === undefined) whole = false;
    else if (stats !== undefined)
      answer({ type: "entry", name: text, kind: kindOf(stats), ...factsOf(stats) });
  }
  answer({ type: "listed", whole });
}

function sendFile(folder: Folder, name: Buffer, maxBytes: number): undefined {
  const stats = statsOf(folder, name);
  if (stats === undefined) return refuse("missing");
  const kind = kindOf(stats);
  if (kind !== "file") return refuse(kind);
  if (stats.nlink > 1) return refuse("hard_link");
  if (stats.size > maxBytes) return refuse("too_large");
  let fd: number;
  try {
    fd = openFile(folder, name);
  } catch {
    return refuse("unreadable");
  }
  try {
    // It was exchanged since it was looked at, or has got another name or grown.
    const opened = fstatSync(fd);
    if (!isSame(fd, stats) || opened.nlink !== 1 || opened.size > maxBytes) return refuse("unreadable");
    answer({ type: "content", ...factsOf(opened) });
    answer({ type: "end", whole: sendContent(fd) });
  } finally {
    closeSync(fd);
  }
}

function refuse(reason: LookRefusal): undefined {
  answer({ type: "refused", reason });
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isDirectory()) return "folder";
  if (stats.isSymbolicLink()) return "link";
  return stats.isFile() ? "file" : "special";
}

/** A file's facts, within what numbers and dates can hold: an agent can set a size or time as far as its file system goes. */
const factsOf = ({ size, mtimeMs, mode }: Stats) => ({
  size: Math.min(size, Number.MAX_SAFE_INTEGER),
  modifiedAt: Math.min(Math.max(0, Math.round(mtimeMs)), latestMs),
  executable: (mode & 0o100) !== 0,
});

/** Undefined for what was removed meanwhile. */
function statsOf(folder: Folder, name: Buffer): Stats | undefined {
  try {
    return lstatSync(inFolder(folder, name));
  } catch {
    return undefined;
  }
}

const hasCode = (error: unknown, code: string) =>
  error instanceof Error && "code" in error && error.code === code;
const isMissing = (error: unknown) => hasCode(error, "ENOENT");
const isDenied = (error: unknown) => hasCode(error, "EACCES");
