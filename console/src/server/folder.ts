import type { RunRequest } from "@ambit/client";

/** What a folder may hold to become part of a request: a larger one belongs in a repository or an archive. */
const maxFiles = 2_000;
const maxBytes = 8 * 1024 * 1024;
/** Folders whose contents are left out of a workspace. */
const leftOutNames: ReadonlySet<string> = new Set([".git", "node_modules"]);

type Source = NonNullable<NonNullable<RunRequest["workspace"]>["sources"]>[number];
type SourceFile = Extract<Source, { type: "files" }>["files"][number];

/** Files of a user's disk, as a run's workspace begins with them. */
export interface ChosenFolder {
  readonly name: string;
  readonly files: readonly SourceFile[];
  readonly bytes: number;
  /** Folders that aren't among them, although they are on the disk. */
  readonly leftOut: readonly string[];
}

interface DiskFile {
  /** Its folders and its name. */
  readonly path: readonly string[];
  readonly file: File;
}

/** @throws Error that says what is wrong with the folder, and what to do */
export async function readFolder(diskFiles: readonly DiskFile[]): Promise<ChosenFolder> {
  const top = diskFiles[0]?.path[0] ?? "folder";
  const hasFolder = diskFiles.every(({ path }) => path.length > 1 && path[0] === top);
  const leftOut = new Set<string>();
  const wanted = diskFiles.flatMap(({ path, file }) => {
    const inside = hasFolder ? path.slice(1) : path;
    const at = inside.findIndex((name) => leftOutNames.has(name));
    if (at === -1) return { path: inside.join("/"), file };
    leftOut.add(inside.slice(0, at + 1).join("/"));
    return [];
  });
  const bytes = wanted.reduce((sum, { file }) => sum + file.size, 0);
  if (wanted.length > maxFiles || bytes > maxBytes)
    throw new Error(
      `This folder has more than a request takes, ${maxFiles.toLocaleString()} files of ${maxBytes / 1024 ** 2} MiB together: choose a smaller one, or name its repository in workspace.sources.`,
    );
  if (wanted.length === 0)
    throw new Error("There is no file in it that a workspace needs: choose a folder with files.");
  const files = await Promise.all(wanted.map(({ path, file }) => sourceFile(path, file)));
  return { name: top, files, bytes, leftOut: [...leftOut] };
}

async function sourceFile(path: string, file: File): Promise<SourceFile> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const content = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!content.includes("\0")) return { path, content };
  } catch {
    // It isn't text.
  }
  return { path, content: base64Of(bytes), encoding: "base64" };
}

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let begin = 0; begin < bytes.length; begin += 8_192)
    binary += String.fromCharCode(...bytes.subarray(begin, begin + 8_192));
  return btoa(binary);
}

export function filesChosenIn(list: FileList): readonly DiskFile[] {
  return Array.from(list, (file) => ({ path: (file.webkitRelativePath || file.name).split("/"), file }));
}

/** What was dropped, folders with everything in them. Reading stops soon after there is more than a request takes. */
export async function filesDroppedIn({ items }: DataTransfer): Promise<readonly DiskFile[]> {
  const diskFiles: DiskFile[] = [];
  // What was dropped can be asked for only now, before anything is waited for.
  const entries = Array.from(items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  for (const entry of entries) await collect(entry, [], diskFiles);
  return diskFiles;
}

async function collect(
  entry: FileSystemEntry,
  above: readonly string[],
  diskFiles: DiskFile[],
): Promise<void> {
  const path = [...above, entry.name];
  if (isFile(entry)) {
    diskFiles.push({ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  if (!isFolder(entry)) return;
  // Its name says all: what is in it isn't read.
  if (leftOutNames.has(entry.name)) {
    diskFiles.push({ path: [...path, ""], file: new File([], "") });
    return;
  }
  const reader = entry.createReader();
  while (diskFiles.length <= maxFiles) {
    // Comes in parts, and ends with an empty one.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (part.length === 0) return;
    for (const child of part) await collect(child, path, diskFiles);
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;

/** The request with the folder's files as the last source of its workspace. Pure. */
export function withFolder(request: RunRequest, folder: ChosenFolder | undefined): RunRequest {
  if (folder === undefined) return request;
  const sources = [
    ...(request.workspace?.sources ?? []),
    { type: "files" as const, files: [...folder.files] },
  ];
  return { ...request, workspace: { ...request.workspace, sources } };
}

/** The same for a plan, which doesn't depend on what is in the files. Pure. */
export function withNamesOf(request: RunRequest, folder: ChosenFolder | undefined): RunRequest {
  const empty = folder && { ...folder, files: folder.files.map(({ path }) => ({ path, content: "" })) };
  return withFolder(request, empty);
}
