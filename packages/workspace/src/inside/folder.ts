import { closeSync, constants, type Dir, fstatSync, opendirSync, openSync } from "node:fs";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** An open folder, so that exchanging it meanwhile can't lead elsewhere. */
export interface Folder {
  readonly fd: number;
  /** The folder's path, for hosts without `/proc`. */
  readonly path: Buffer;
}

/** A name in an open folder. Node has no `openat`; on Linux the descriptor's entry in `/proc` does the same. */
export function inFolder({ fd, path }: Folder, name: Buffer): Buffer {
  const before = process.platform === "linux" ? Buffer.from(`/proc/self/fd/${fd}/`) : Buffer.from(`${path}/`);
  return Buffer.concat([before, name]);
}

/** @throws an error with a code for a link, or what is no folder */
export function openFolder(path: Buffer): Folder {
  return { fd: openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path };
}

/** Opens a regular file, without waiting for a pipe's writer. */
export function openFile(folder: Folder, name: Buffer): number {
  return openSync(inFolder(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

/** A folder below an open one, which this closes. @throws an error with a code for a link on the way, or what is no folder */
export function openBelow(root: Folder, names: readonly Buffer[]): Folder {
  let folder = root;
  for (const name of names) {
    const parent = folder;
    try {
      folder = openFolder(inFolder(parent, name));
    } finally {
      closeFolder(parent);
    }
  }
  return folder;
}

/** A name as text. Undefined where it isn't UTF-8, or has a control character or a backslash. */
export function textOf(name: Buffer): string | undefined {
  const text = name.toString("utf8");
  return Buffer.from(text, "utf8").equals(name) && !forbidden.test(text) ? text : undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const forbidden = /[\u0000-\u001f\u007f\\]/;

/** The folder's names, sorted. @param spend called for each. @param maxNames the first that the system names. Default: all. */
export function namesIn(
  folder: Folder,
  spend: () => void,
  maxNames = Number.POSITIVE_INFINITY,
): readonly Buffer[] {
  const names: Buffer[] = [];
  const dir: Dir = opendirSync(inFolder(folder, Buffer.from(".")).toString(), {
    // Names are bytes: this encoding has one character for each.
    encoding: "latin1",
    bufferSize: 256,
  });
  try {
    for (let entry = dir.readSync(); entry !== null && names.length < maxNames; entry = dir.readSync()) {
      spend();
      names.push(Buffer.from(entry.name, "latin1"));
    }
  } finally {
    dir.closeSync();
  }
  return names.sort(Buffer.compare);
}

export function closeFolder({ fd }: Folder): void {
  closeSync(fd);
}

export function isSame(fd: number, { dev, ino }: { readonly dev: number; readonly ino: number }): boolean {
  const stats = fstatSync(fd);
  return stats.isFile() && stats.dev === dev && stats.ino === ino;
}
