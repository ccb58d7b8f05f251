import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import {
  mkdir,
  mkdtemp,
  open,
  opendir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BlobsBackend, codeOf, messageOf, StoreFailed, stateFolder } from "@ambit/core/plugin";
import {
  type Blob,
  type BlobFile,
  type BlobOwner,
  type Blobs,
  requireBlobName,
} from "@ambit/workspace/blobs";

/** The file of an owner's folder that names it: a folder's own name is a digest. */
const ownerFile = "owner";
/** Of a file that isn't complete, and milliseconds after which its writer must have ended without removing it. */
const draft = { prefix: ".draft-", maxAgeMs: 24 * 60 * 60 * 1_000 } as const;
const chunkBytes = 262_144;

/** Files in a folder, one folder for each run. @param config `folder`: default as the plugin's configuration says */
export function folderBlobs(config: { readonly folder?: string | undefined }): BlobsBackend<Blobs> {
  return {
    name: "folder",
    open: async ({ temporary }) => {
      if (temporary) return new FolderBlobs(await mkdtemp(join(tmpdir(), "ambit-blobs-")), true);
      const folder = config.folder ?? defaultFolder();
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return new FolderBlobs(folder, false);
    },
  };
}

class FolderBlobs implements Blobs {
  readonly #folder: string;
  readonly #isTemporary: boolean;

  constructor(folder: string, isTemporary: boolean) {
    this.#folder = folder;
    this.#isTemporary = isTemporary;
  }

  async put(owner: string, name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const folder = this.#folderOf(owner);
    const path = join(folder, requireBlobName(name));
    const unfinished = join(folder, `${draft.prefix}${randomBytes(8).toString("hex")}`);
    const handle = await orFailed("keep a file", async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await nameOwner(folder, owner);
      return open(unfinished, "wx", 0o600);
    });
    try {
      try {
        for await (const bytes of content) await orFailed("keep a file", () => handle.writeFile(bytes));
      } finally {
        await handle.close();
      }
      await orFailed("keep a file", () => rename(unfinished, path));
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {});
      throw error;
    }
  }

  async get(owner: string, name: string): Promise<Blob | undefined> {
    const path = join(this.#folderOf(owner), requireBlobName(name));
    return orFailed("find a file", async () => {
      try {
        return { size: (await stat(path)).size, content: contentOf(path) };
      } catch (error) {
        if (codeOf(error) === "ENOENT") return undefined;
        throw error;
      }
    });
  }

  async *files(owner: string): AsyncGenerator<BlobFile, void, undefined> {
    const folder = this.#folderOf(owner);
    const files = await orFailed("list files", async () => {
      try {
        return await readdir(folder);
      } catch (error) {
        if (codeOf(error) === "ENOENT") return [];
        throw error;
      }
    });
    for (const name of files) {
      if (name === ownerFile) continue;
      const path = join(folder, name);
      const at = await orFailed("list files", () => timeOf(path));
      if (at === undefined) continue;
      if (!name.startsWith(draft.prefix)) yield { name, at };
      // Of a process that was killed. An owner that is never deleted would keep it.
      else if (at < Date.now() - draft.maxAgeMs)
        await orFailed("delete a file", () => rm(path, { force: true }));
    }
  }

  async deleteFile(owner: string, name: string): Promise<void> {
    const path = join(this.#folderOf(owner), requireBlobName(name));
    await orFailed("delete a file", () => rm(path, { force: true }));
  }

  async *owners(before: number): AsyncGenerator<BlobOwner, void, undefined> {
    const folder = await orFailed("list the owners of files", () => opendir(this.#folder));
    for await (const { name } of folder) {
      if (!/^[0-9a-f]{64}$/.test(name)) continue;
      const path = join(this.#folder, name, ownerFile);
      const owners = await orFailed("list the owners of files", async () => {
        const since = await timeOf(path);
        if (since === undefined || since >= before) return undefined;
        return { owner: await readFile(path, "utf8"), since };
      });
      if (owners !== undefined) yield owners;
    }
  }

  async delete(owner: string): Promise<void> {
    const folder = this.#folderOf(owner);
    await orFailed("delete files", () => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  }

  async close(): Promise<void> {
    if (this.#isTemporary) await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #folderOf(owner: string): string {
    return join(this.#folder, createHash("sha256").update(owner).digest("hex"));
  }
}

/** Renamed into place when it is complete: with half a name, what is in the folder would never be deleted. */
async function nameOwner(folder: string, owner: string): Promise<void> {
  const path = join(folder, ownerFile);
  const isNamed = await stat(path).then(
    ({ size }) => size === Buffer.byteLength(owner),
    () => false,
  );
  if (isNamed) return;
  const unfinished = join(folder, `${draft.prefix}${randomBytes(8).toString("hex")}`);
  await writeFile(unfinished, owner, { mode: 0o600, flag: "wx" });
  await rename(unfinished, path);
}

/** Undefined where it has just been deleted, or isn't there yet. */
async function timeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function* contentOf(path: string): AsyncGenerator<Buffer, void, undefined> {
  const handle = await orFailed("read a file", () => open(path, constants.O_RDONLY));
  try {
    for (;;) {
      const buffer = Buffer.allocUnsafe(chunkBytes);
      const { bytesRead } = await orFailed("read a file", () => handle.read(buffer, 0, buffer.length));
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** @throws StoreFailed */
async function orFailed<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (cause) {
    const message = `The folder of files couldn't ${what}: ${messageOf(cause)}. Check its disk and rights: \`folder\` of @ambit/blobs-folder.`;
    throw new StoreFailed(message, { cause });
  }
}

function defaultFolder(): string {
  const { AMBIT_BLOBS_FOLDER: folder } = process.env;
  if (folder !== undefined && folder !== "") return folder;
  return stateFolder("blobs");
}
