import { Header } from "tar";

const block = 512;

/** One file, readable by everyone, and the folders in between, as the engine unpacks it (POSIX tar). */
export function archiveOf(path: string, content: Uint8Array): Buffer {
  const names = path.split("/").filter((name) => name !== "");
  const folders = names.slice(0, -1).map((_, index) => `${names.slice(0, index + 1).join("/")}/`);
  const owner = { uid: 0, gid: 0, mtime: new Date() };
  return Buffer.concat([
    ...folders.map((folder) => headerOf({ ...owner, path: folder, mode: 0o755, size: 0, type: "Directory" })),
    headerOf({ ...owner, path: names.join("/"), mode: 0o644, size: content.length, type: "File" }),
    content,
    Buffer.alloc(((block - (content.length % block)) % block) + 2 * block),
  ]);
}

function headerOf(fields: ConstructorParameters<typeof Header>[0]): Buffer {
  const bytes = Buffer.alloc(block);
  if (new Header(fields).encode(bytes, 0)) throw new Error("a path is too long for an archive");
  return bytes;
}
