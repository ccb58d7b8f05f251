import { closeSync, fstatSync, lstatSync, readlinkSync, readSync, type Stats } from "node:fs";
import ignore, { type Ignore } from "ignore";
import { answer, digestOf, sendContent } from "./answers.js";
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
import { look } from "./look.js";
import { type Globs, globsOf, isGitFolder } from "./paths.js";
import { type LookWish, stateOf, type Wish, type WishAnswer } from "./wish.js";

/** Folders within each other; each holds a descriptor while it is looked at. */
const maxDepth = 100;

class TooManyEntries extends Error {}

/** A file with several names: it may leave only if all of them lie in the workspace. */
interface Linked {
  readonly links: number;
  readonly paths: { readonly path: string; readonly isIncluded: boolean; readonly isChange: boolean }[];
}

type Reason = Extract<WishAnswer, { type: "omitted" }>["reason"];

/**
 * Walks the workspace with the rights of the sandbox's processes: what they can't read doesn't leave. Every file is read
 * through a descriptor, without following a link on the way.
 */
class Collection {
  readonly #wish: Wish;
  readonly #known: ReadonlyMap<string, string>;
  /** Folders of known paths. */
  readonly #knownFolders = new Set<string>();
  readonly #globs: Globs;
  readonly #seen = new Set<string>();
  readonly #hidden = new Set<string>();
  readonly #linked = new Map<string, Linked>();
  #entries = 0;
  #files = 0;
  #bytes = 0;

  constructor(wish: Wish) {
    this.#wish = wish;
    this.#known = new Map(wish.known);
    this.#globs = globsOf(wish.include);
    for (const [path] of wish.known)
      for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
        this.#knownFolders.add(path.slice(0, end));
  }

  run(): undefined {
    try {
      const root = openFolder(Buffer.from(this.#wish.workspace));
      this.#walk(root, "", [], false, 0);
      for (const linked of this.#linked.values()) this.#settle(linked);
    } catch (error) {
      if (!(error instanceof TooManyEntries)) throw error;
      return answer({ type: "too_many_entries" });
    }
    for (const path of this.#wish.patch ? this.#known.keys() : [])
      if (!this.#seen.has(path) && !this.#isHidden(path)) answer({ type: "deleted", path });
    answer({ type: "done" });
  }

  #walk(
    folder: Folder,
    path: string,
    above: readonly IgnoreRules[],
    isIgnoredHere: boolean,
    depth: number,
  ): undefined {
    try {
      const rules = this.#wish.patch ? rulesIn(folder, path, above) : above;
      for (const name of namesIn(folder, () => this.#spend())) {
        if (isGitFolder(name.toString())) continue;
        this.#look(folder, name, path, rules, isIgnoredHere, depth);
      }
    } finally {
      closeFolder(folder);
    }
  }

  #look(
    folder: Folder,
    name: Buffer,
    within: string,
    rules: readonly IgnoreRules[],
    isIgnoredHere: boolean,
    depth: number,
  ): undefined {
    const text = name.toString("utf8");
    const path = within === "" ? text : `${within}/${text}`;
    let stats: Stats;
    try {
      stats = lstatSync(inFolder(folder, name));
    } catch (error) {
      const isGone = error instanceof Error && "code" in error && error.code === "ENOENT";
      return isGone ? undefined : this.#omit(path, "unreadable", "unreadable");
    }
    const isFolder = stats.isDirectory();
    const ignored = isIgnoredHere || isIgnored(isFolder ? `${path}/` : path, rules);
    if (textOf(name) === undefined) {
      if (!ignored) this.#omit(path, "name", "name");
      return;
    }
    if (isFolder) return this.#descend(folder, name, path, { rules, ignored, depth });
    const isIncluded = this.#globs.matches(path);
    const isChange = this.#wish.patch && (!ignored || this.#known.has(path));
    if (!isIncluded && !isChange) return;
    this.#seen.add(path);
    if (stats.isSymbolicLink()) return this.#omit(path, "link", `link:${targetOf(folder, name)}`);
    if (!stats.isFile()) return this.#omit(path, "special", "special");
    if (stats.nlink > 1) return this.#postpone(path, stats, isIncluded, isChange);
    this.#read(folder, name, path, stats, isIncluded, isChange);
  }

  #descend(
    folder: Folder,
    name: Buffer,
    path: string,
    { rules, ignored, depth }: { rules: readonly IgnoreRules[]; ignored: boolean; depth: number },
  ): undefined {
    const isWanted =
      (this.#wish.patch && (!ignored || this.#knownFolders.has(path))) || this.#globs.mayMatchBelow(path);
    if (!isWanted) return;
    if (depth >= maxDepth) return this.#hide(path, "too_many");
    let below: Folder;
    try {
      below = openFolder(inFolder(folder, name));
    } catch {
      return this.#hide(path, "unreadable");
    }
    this.#walk(below, path, rules, ignored, depth + 1);
  }

  #postpone(path: string, { dev, ino, nlink }: Stats, isIncluded: boolean, isChange: boolean): undefined {
    const key = `${dev}:${ino}`;
    const linked = this.#linked.get(key) ?? { links: nlink, paths: [] };
    linked.paths.push({ path, isIncluded, isChange });
    this.#linked.set(key, linked);
  }

  /** Now that every name was seen. */
  #settle({ links, paths }: Linked): undefined {
    for (const { path, isIncluded, isChange } of paths) {
      if (paths.length < links) {
        this.#omit(path, "hard_link", "hard_link");
        continue;
      }
      const names = path.split("/").map((name) => Buffer.from(name));
      const last = names.pop();
      let folder: Folder | undefined;
      try {
        folder = openBelow(openFolder(Buffer.from(this.#wish.workspace)), names);
        if (last !== undefined) {
          const stats = lstatSync(inFolder(folder, last));
          if (stats.nlink === links) this.#read(folder, last, path, stats, isIncluded, isChange);
          else this.#omit(path, "hard_link", "hard_link");
        }
      } catch {
        this.#omit(path, "unreadable", "unreadable");
      } finally {
        if (folder !== undefined) closeFolder(folder);
      }
    }
  }

  #read(
    folder: Folder,
    name: Buffer,
    path: string,
    stats: Stats,
    isIncluded: boolean,
    isChange: boolean,
  ): undefined {
    let fd: number;
    try {
      fd = openFile(folder, name);
    } catch {
      return this.#omit(path, "unreadable", "unreadable");
    }
    try {
      // It was exchanged since it was looked at.
      if (!isSame(fd, stats)) return this.#omit(path, "unreadable", "unreadable");
      const executable = (stats.mode & 0o100) !== 0;
      const known = this.#known.get(path);
      if (stats.size > this.#wish.maxBytes)
        return this.#omit(path, "too_large", `large:${stats.size}:${stats.mtimeMs}`);
      const isUnchanged =
        known !== undefined && isChange && stateOf(digestOf(fd, stats.size), executable) === known;
      if (isUnchanged && !isIncluded) return;
      if (this.#files >= this.#wish.maxFiles) return this.#omit(path, "too_many", "too_many");
      if (this.#bytes + stats.size > this.#wish.maxBytes) return this.#omit(path, "too_large", "too_large");
      this.#files += 1;
      this.#bytes += stats.size;
      answer({ type: "file", path, executable, included: isIncluded });
      answer({ type: "end", whole: sendContent(fd) });
    } finally {
      closeSync(fd);
    }
  }

  /** A folder that isn't looked into: nothing is known of what is below it. */
  #hide(path: string, reason: Reason): undefined {
    this.#hidden.add(path);
    this.#omit(path, reason, reason);
  }

  #isHidden(path: string): boolean {
    if (this.#hidden.size === 0) return false;
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
      if (this.#hidden.has(path.slice(0, end))) return true;
    return false;
  }

  /** Reports an omission. One that was the same at the start isn't a change. */
  #omit(path: string, reason: Reason, state: string): undefined {
    this.#seen.add(path);
    if (this.#known.get(path) === state && !this.#globs.matches(path)) return;
    answer({ type: "omitted", path, reason, state });
  }

  #spend(): undefined {
    this.#entries += 1;
    if (this.#entries > this.#wish.maxEntries) throw new TooManyEntries();
  }
}

function targetOf(folder: Folder, name: Buffer): string {
  try {
    return readlinkSync(inFolder(folder, name), "latin1");
  } catch {
    return "";
  }
}

/** Called by what loads this program: see `programs.ts`. @param input the wish, as JSON. */
export function main(input: string): void {
  const wish: Wish | LookWish = JSON.parse(input);
  if ("look" in wish) look(wish);
  else new Collection(wish).run();
}

/** Bytes of one `.gitignore`; a larger one isn't read. */
const maxBytes = 1_048_576;

/** The rules of one `.gitignore`, for paths below its folder. */
interface IgnoreRules {
  /** The folder's path, with a slash at its end; empty for the workspace. */
  readonly below: string;
  readonly rules: Ignore;
}

/** The rules that hold in a folder: those of the folders above it, and its own. */
function rulesIn(folder: Folder, path: string, above: readonly IgnoreRules[]): readonly IgnoreRules[] {
  const text = readRules(folder);
  if (text === undefined) return above;
  return [...above, { below: path === "" ? "" : `${path}/`, rules: ignore().add(text) }];
}

/** Whether git ignores a path, by the last rule of the deepest file that matches. @param path with a slash at the end of a folder's. */
function isIgnored(path: string, rules: readonly IgnoreRules[]): boolean {
  for (let index = rules.length - 1; index >= 0; index -= 1) {
    const level = rules[index];
    if (level === undefined) continue;
    const { ignored, unignored } = level.rules.test(path.slice(level.below.length));
    if (ignored || unignored) return ignored;
  }
  return false;
}

function readRules(folder: Folder): string | undefined {
  let fd: number;
  try {
    fd = openFile(folder, Buffer.from(".gitignore"));
  } catch {
    return undefined;
  }
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile() || size > maxBytes) return undefined;
    const content = Buffer.alloc(size);
    const length = readSync(fd, content, 0, size, 0);
    return content.toString("utf8", 0, length);
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}
