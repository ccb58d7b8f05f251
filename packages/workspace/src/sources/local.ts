import { type ArchiveLine, maxLineBytes } from "../inside/snapshot/format.js";

/** Something of this host that a new workspace gets besides its sources, as `ambit run` has it of the user's folder. */
export type LocalEntry =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | {
      readonly kind: "file";
      readonly path: string;
      readonly mode: number;
      /** Milliseconds since 1970. */
      readonly mtime: number;
      /** Undefined: it is gone, or no regular file any more. */
      readonly content: () => Promise<AsyncIterable<Uint8Array> | undefined>;
    };

/** The entries, in any order, as an archive of `unpackSnapshot`. A path occurs once, and none leads out of the workspace. */
export async function* archiveOfLocal(
  entries: readonly LocalEntry[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const sorted = entries
    .map((entry) => ({ entry, names: entry.path.split("/") }))
    .sort((one, other) => byNames(one.names, other.names));
  let within: readonly string[] = [];
  yield line({ type: "snapshot", version: 1 });
  yield line({ type: "root", root: "workspace" });
  for (const { entry, names } of sorted) {
    const folders = entry.kind === "folder" ? names : names.slice(0, -1);
    let shared = 0;
    while (shared < within.length && within[shared] === folders[shared]) shared += 1;
    for (let depth = within.length; depth > shared; depth -= 1) yield line({ type: "leave" });
    for (const name of folders.slice(shared)) yield line({ type: "folder", name: bytes(name), mode: 0o755 });
    within = folders;
    const name = bytes(names.at(-1) ?? "");
    if (entry.kind === "link") yield line({ type: "link", name, target: bytes(entry.target) });
    if (entry.kind !== "file") continue;
    const content = await entry.content();
    if (content === undefined) continue;
    yield line({ type: "file", name, mode: entry.mode & 0o777, mtime: entry.mtime });
    for await (const piece of content) {
      if (piece.length === 0) continue;
      yield Buffer.from(`${piece.length}\n`);
      yield piece;
    }
    yield Buffer.from("0\n");
  }
  for (const _ of within) yield line({ type: "leave" });
  yield line({ type: "leave" });
  yield line({ type: "end" });
}

function byNames(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((name, index) => name !== other[index]);
  if (at === -1) return one.length - other.length;
  const [name = "", otherName] = [one[at], other[at]];
  return otherName === undefined ? 1 : name < otherName ? -1 : 1;
}

/** Names and targets are bytes, with one character for each. */
const bytes = (text: string) => Buffer.from(text).toString("latin1");

function line(content: ArchiveLine): Buffer {
  const encoded = Buffer.from(`${JSON.stringify(content)}\n`);
  if (encoded.length > maxLineBytes) throw new RangeError("a name or a link's target is too long");
  return encoded;
}
