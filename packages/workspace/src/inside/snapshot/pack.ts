import { closeSync, fstatSync, lstatSync, readlinkSync, readSync, type Stats } from "node:fs";
import { closeFolder, type Folder, inFolder, isSame, namesIn, openFile, openFolder } from "../folder.js";
import { type ArchiveLine, maxDepth, type RootName, SnapshotError, type SnapshotWish } from "./format.js";
import { Output } from "./streams.js";

const chunkBytes = 262_144;

/** Writes workspace and home to stdout. Every file is read through a descriptor, without following a link on the way. */
export class Packing {
  readonly #output = new Output();
  readonly #chunk = Buffer.allocUnsafe(chunkBytes);
  /** Files with several names, by device and inode. */
  readonly #linked = new Map<string, number>();
  #roots: ReadonlySet<string> = new Set();
  #bytes = 0;
  entries = 0;
  skipped = 0;

  constructor(readonly wish: SnapshotWish) {}

  run(): undefined {
    const roots = (["workspace", "home"] as const).flatMap((root) => {
      const path = this.wish[root];
      return path === undefined ? [] : [{ root, path }];
    });
    // One may lie in the other, or be the same.
    const ids = roots.map(({ path }) => idOf(lstatSync(path)));
    this.#roots = new Set(ids);
    this.#line({ type: "snapshot", version: 1 });
    for (const [index, { root, path }] of roots.entries())
      if (ids.indexOf(ids[index] ?? "") === index) this.#root(root, path);
    this.#line({ type: "end" });
    this.#output.flush();
  }

  #root(root: RootName, path: string): undefined {
    this.#line({ type: "root", root });
    this.#inside(openFolder(Buffer.from(path)), path, 0);
    this.#line({ type: "leave" });
  }

  /** Packs what is in a folder, and closes it. @param path for messages */
  #inside(folder: Folder, path: string, depth: number): undefined {
    try {
      for (const name of namesIn(folder, () => this.#spend())) this.#entry(folder, name, path, depth);
    } finally {
      closeFolder(folder);
    }
  }

  #entry(folder: Folder, bytes: Buffer, above: string, depth: number): undefined {
    const name = bytes.toString("latin1");
    const path = `${above}/${bytes.toString()}`;
    const stats = statsOf(inFolder(folder, bytes));
    if (stats === undefined) return;
    if (stats.isDirectory()) {
      if (this.#roots.has(idOf(stats))) return;
      if (depth >= maxDepth) throw new SnapshotError("too_deep", path);
      const below = readable(path, () => openFolder(inFolder(folder, bytes)));
      this.#line({ type: "folder", name, mode: stats.mode & 0o777 });
      this.#inside(below, path, depth + 1);
      this.#line({ type: "leave" });
    } else if (stats.isSymbolicLink()) {
      const target = readlinkSync(inFolder(folder, bytes), "latin1");
      this.#line({ type: "link", name, target });
    } else if (stats.isFile()) this.#file(folder, bytes, stats, path);
    else this.skipped += 1;
  }

  #file(folder: Folder, bytes: Buffer, stats: Stats, path: string): undefined {
    const name = bytes.toString("latin1");
    const key = idOf(stats);
    const first = stats.nlink > 1 ? this.#linked.get(key) : undefined;
    if (first !== undefined) return this.#line({ type: "same", name, id: first });
    const fd = readable(path, () => openFile(folder, bytes));
    try {
      // It was exchanged since it was looked at.
      if (!isSame(fd, stats)) throw new SnapshotError("unreadable", path);
      const { mode, mtimeMs: mtime } = fstatSync(fd);
      const line = { type: "file", name, mode: mode & 0o777, mtime } as const;
      if (stats.nlink === 1) this.#line(line);
      else {
        const id = this.#linked.size;
        this.#linked.set(key, id);
        this.#line({ ...line, id });
      }
      this.#content(fd, path);
    } finally {
      closeSync(fd);
    }
  }

  /** Packs a file until its end, wherever that is by now. */
  #content(fd: number, path: string): undefined {
    for (;;) {
      const length = readSync(fd, this.#chunk, 0, this.#chunk.length, null);
      this.#bytes += length;
      if (this.#bytes > this.wish.maxBytes) throw new SnapshotError("too_large", path);
      this.#output.write(Buffer.from(`${length}\n`));
      if (length === 0) return;
      this.#output.write(this.#chunk.subarray(0, length));
    }
  }

  #line(line: ArchiveLine): undefined {
    this.#output.write(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  #spend(): undefined {
    this.entries += 1;
    if (this.entries > this.wish.maxEntries) throw new SnapshotError("too_many", "");
  }
}

const idOf = ({ dev, ino }: Pick<Stats, "dev" | "ino">) => `${dev}:${ino}`;

function statsOf(path: Buffer): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    // It was removed since the folder was listed.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function readable<Opened>(path: string, open: () => Opened): Opened {
  try {
    return open();
  } catch {
    throw new SnapshotError("unreadable", path);
  }
}
