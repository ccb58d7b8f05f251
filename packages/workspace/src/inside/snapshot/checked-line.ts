import { type ArchiveLine, SnapshotError } from "./format.js";

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
