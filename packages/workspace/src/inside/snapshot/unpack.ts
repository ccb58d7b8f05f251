import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  futimesSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { closeFolder, type Folder, inFolder, openFolder } from "../folder.js";
import {
  type ArchiveLine,
  bytesOf,
  chunkSizeIn,
  lineOf,
  maxDepth,
  type RootName,
  requireName,
  SnapshotError,
  type SnapshotWish,
} from "./format.js";

import { Input } from "./streams.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, COPYFILE_EXCL } = constants;

/** Where a file is, so that it can get another name. */
interface Place {
  readonly root: RootName;
  readonly names: readonly Buffer[];
}

interface OpenFolder {
  readonly folder: Folder;
  readonly name: Buffer;
  readonly mode: number;
}

/**
 * Writes what stdin has into workspace and home. The archive isn't trusted: the setup's programs may have made it, and where
 * this sandbox isn't confined its processes reach more than theirs did. Every name is checked, every folder is opened without
 * following a link, and every file is new.
 */
export class Unpacking {
  readonly #input = new Input();
  readonly #places = new Map<number, Place>();
  #root: RootName | undefined;
  #stack: OpenFolder[] = [];
  /** Levels of folders below a root that isn't wanted, with that root. */
  #skipped = 0;
  #bytes = 0;
  entries = 0;
  readonly skipped = 0;

  constructor(readonly wish: SnapshotWish) {}

  run(): undefined {
    const first = this.#line();
    if (first.type !== "snapshot") throw new SnapshotError("damaged", "it doesn't begin as a snapshot");
    for (let line = this.#line(); line.type !== "end"; line = this.#line()) this.#take(line);
    if (this.#root !== undefined) throw new SnapshotError("damaged", "it ends within a folder");
  }

  #take(line: ArchiveLine): undefined {
    if (this.#skipped > 0) return this.#skip(line);
    if (line.type === "root") return this.#enterRoot(line.root);
    const here = this.#stack.at(-1)?.folder;
    if (here === undefined)
      throw new SnapshotError("damaged", `it has a '${line.type}' outside of every root`);
    if (line.type === "leave") return this.#leave();
    this.entries += 1;
    if (this.entries > this.wish.maxEntries) throw new SnapshotError("too_many", "");
    switch (line.type) {
      case "folder":
        return this.#enter(here, line);
      case "file":
        return this.#file(here, line);
      case "link": {
        const target = bytesOf(line.target);
        made(here, requireName(line.name), (path) => symlinkSync(target, path));
        return;
      }
      case "same":
        return this.#same(here, line);
      default:
        throw new SnapshotError("damaged", `it has a '${line.type}' within a folder`);
    }
  }

  #enterRoot(root: RootName): undefined {
    if (this.#root !== undefined) throw new SnapshotError("damaged", "it has a root within a root");
    const path = this.wish[root];
    if (path === undefined) {
      this.#skipped = 1;
      return;
    }
    this.#root = root;
    this.#stack = [{ folder: openFolder(Buffer.from(path)), name: Buffer.alloc(0), mode: 0 }];
  }

  #skip(line: ArchiveLine): undefined {
    if (line.type === "folder") this.#skipped += 1;
    else if (line.type === "leave") this.#skipped -= 1;
    else if (line.type === "file")
      for (let size = this.#chunk(); size > 0; size = this.#chunk()) this.#input.bytes(size, () => {});
  }

  #enter(here: Folder, { name: given, mode }: ArchiveLine & { type: "folder" }): undefined {
    if (this.#stack.length > maxDepth) throw new SnapshotError("too_deep", "");
    const name = requireName(given);
    try {
      mkdirSync(inFolder(here, name), 0o700);
    } catch (error) {
      if (!isExisting(error)) throw error;
    }
    // What is there and is no folder, or a link to one, can't be opened like this.
    this.#stack.push({ folder: openFolder(inFolder(here, name)), name, mode });
  }

  /** Ends a folder. Its mode is set last, since it may forbid writing into it. */
  #leave(): undefined {
    const left = this.#stack.pop();
    if (left === undefined) return;
    if (this.#stack.length === 0) this.#root = undefined;
    else fchmodSync(left.folder.fd, left.mode & 0o777);
    closeFolder(left.folder);
  }

  #file(here: Folder, { name: given, mode, mtime, id }: ArchiveLine & { type: "file" }): undefined {
    const name = requireName(given);
    const fd = made(here, name, (path) => openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
    try {
      for (let size = this.#chunk(); size > 0; size = this.#chunk())
        this.#input.bytes(size, (piece) => writeAll(fd, piece));
      fchmodSync(fd, mode & 0o777);
      futimesSync(fd, mtime / 1_000, mtime / 1_000);
    } finally {
      closeSync(fd);
    }
    if (id !== undefined && this.#root !== undefined)
      this.#places.set(id, {
        root: this.#root,
        names: [...this.#stack.slice(1).map((one) => one.name), name],
      });
  }

  #chunk(): number {
    const size = chunkSizeIn(this.#input.line());
    this.#bytes += size;
    if (this.#bytes > this.wish.maxBytes) throw new SnapshotError("too_large", "");
    return size;
  }

  #same(here: Folder, { name: given, id }: ArchiveLine & { type: "same" }): undefined {
    const name = requireName(given);
    const place = this.#places.get(id);
    if (place === undefined) throw new SnapshotError("damaged", "it has a second name of no file");
    const { root, names } = place;
    const last = names.at(-1) ?? Buffer.alloc(0);
    let folder = openFolder(Buffer.from(this.wish[root] ?? ""));
    try {
      for (const one of names.slice(0, -1)) {
        const above = folder;
        folder = openFolder(inFolder(above, one));
        closeFolder(above);
      }
      const first = inFolder(folder, last);
      if (!lstatSync(first).isFile()) throw new SnapshotError("damaged", "it has a second name of no file");
      made(here, name, (path) => linkOrCopy(first, path));
    } finally {
      closeFolder(folder);
    }
  }

  #line(): ArchiveLine {
    return lineOf(this.#input.line());
  }
}

/** Makes what wasn't there. A file or link of that name is removed first, never followed. */
function made<Made>(here: Folder, name: Buffer, make: (path: Buffer) => Made): Made {
  const path = inFolder(here, name);
  try {
    return make(path);
  } catch (error) {
    if (!isExisting(error)) throw error;
    unlinkSync(path);
    return make(path);
  }
}

function linkOrCopy(from: Buffer, to: Buffer): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (isExisting(error)) throw error;
    // Two file systems, or one without such names.
    copyFileSync(from, to, COPYFILE_EXCL);
  }
}

function isExisting(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

function writeAll(fd: number, bytes: Buffer): undefined {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
