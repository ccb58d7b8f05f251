/**
 * A snapshot's archive: lines of JSON, and after a file's line its content in chunks, each a line with its number of bytes and
 * then the bytes; 0 ends it. Folders nest: nothing in it is a path, only names, so that no entry can lead elsewhere.
 * Names and links' targets are bytes, with one character for each.
 */
export type ArchiveLine =
  /** The first line. */
  | { readonly type: "snapshot"; readonly version: 1 }
  /** What follows is in this root, until `leave`. */
  | { readonly type: "root"; readonly root: RootName }
  /** What follows is in this folder, until `leave`. */
  | { readonly type: "folder"; readonly name: string; readonly mode: number }
  | { readonly type: "leave" }
  | {
      readonly type: "file";
      readonly name: string;
      readonly mode: number;
      /** Milliseconds since 1970. */
      readonly mtime: number;
      /** Set where the file has further names. */
      readonly id?: number;
    }
  | { readonly type: "link"; readonly name: string; readonly target: string }
  /** Another name of the file with this id. */
  | { readonly type: "same"; readonly name: string; readonly id: number }
  /** The last line: without it, the archive is cut off. */
  | { readonly type: "end" };

export type RootName = "workspace" | "home";

/** What the runner asks of the program. Travels as JSON. */
export interface SnapshotWish {
  readonly action: "pack" | "unpack";
  /** Absolute, as seen inside. Absent, here or below: that folder isn't packed, and what an archive has of it is skipped. */
  readonly workspace?: string;
  readonly home?: string;
  /** Files, folders and links. */
  readonly maxEntries: number;
  /** Bytes of the files' contents. */
  readonly maxBytes: number;
}

/** Why it failed. The runner knows what to say of each. */
export type SnapshotProblem = "too_many" | "too_large" | "too_deep" | "unreadable" | "damaged";

/** The last line that the program prints to stderr. None of it can be trusted. */
export type SnapshotReport =
  | {
      readonly done: true;
      readonly entries: number;
      /** Devices, pipes and sockets, which aren't in it. */
      readonly skipped: number;
    }
  | {
      readonly done: false;
      readonly problem: SnapshotProblem;
      /** A path, or another detail. */
      readonly what: string;
    };

export class SnapshotError extends Error {
  constructor(
    readonly problem: SnapshotProblem,
    message: string,
  ) {
    super(message);
  }
}

/** Folders within each other; each holds a descriptor while it is looked at. */
export const maxDepth = 200;

/** Bytes of a line: a name and a link's target, escaped. */
export const maxLineBytes = 65_536;

/** The line before a chunk. @throws SnapshotError */
export function chunkSizeIn(line: string): number {
  if (!/^(?:0|[1-9]\d{0,8})$/.test(line)) throw new SnapshotError("damaged", "it has a chunk without a size");
  return Number(line);
}

/** The bytes of a name or a link's target. */
export function bytesOf(text: string): Buffer {
  // Only the last byte of a larger character would be left, such as that of a slash.
  if (/[^\0-\xff]/.test(text)) throw new SnapshotError("damaged", "it has a name or target that isn't bytes");
  return Buffer.from(text, "latin1");
}

/** A name that stays in its folder. */
export function requireName(name: string): Buffer {
  const bytes = bytesOf(name);
  const isName = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name) && bytes.length <= 255;
  if (!isName) throw new SnapshotError("damaged", "it has a name that can't be one");
  return bytes;
}

/** A line of an archive that isn't trusted. @throws SnapshotError */
export function lineOf(text: string): ArchiveLine {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw damaged();
  }
  if (typeof read !== "object" || read === null || !("type" in read)) throw damaged();
  const line: { readonly [key: string]: unknown } = { ...read };
  const { type } = read;
  switch (type) {
    case "leave":
    case "end":
      return { type };
    case "snapshot":
      if (line.version !== 1) throw new SnapshotError("damaged", "it is of another version of Ambit");
      return { type, version: 1 };
    case "root":
      if (line.root !== "workspace" && line.root !== "home") throw damaged();
      return { type, root: line.root };
    case "folder":
      return { type, name: string(line.name), mode: whole(line.mode) };
    case "file": {
      const file = {
        type,
        name: string(line.name),
        mode: whole(line.mode),
        mtime: number(line.mtime),
      } as const;
      return line.id === undefined ? file : { ...file, id: whole(line.id) };
    }
    case "link":
      return { type, name: string(line.name), target: string(line.target) };
    case "same":
      return { type, name: string(line.name), id: whole(line.id) };
    default:
      throw damaged();
  }
}

function damaged(): SnapshotError {
  return new SnapshotError("damaged", "it has a line that doesn't belong there");
}

function string(value: unknown): string {
  if (typeof value !== "string") throw damaged();
  return value;
}

function number(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw damaged();
  return value;
}

function whole(value: unknown): number {
  const read = number(value);
  if (!Number.isSafeInteger(read) || read < 0) throw damaged();
  return read;
}
