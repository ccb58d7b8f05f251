import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BlobsBackend, codeOf, definePlugin, messageOf, StoreFailed } from "@ambit/core/plugin";
import {
  type Blob,
  type BlobFile,
  type BlobOwner,
  type Blobs,
  requireBlobName,
} from "@ambit/workspace/blobs";
import { z } from "zod";

export const configSchema = z.strictObject({
  /** The folder of all files, which is created. */
  folder: z.string().min(1).default("blobs"),
});

/** In an owner's folder: its name, since the folder's own is a digest, and what isn't complete. */
const ownerFile = "owner";
const draft = "draft-";

/** The files of each owner, a run or a snapshot, in a folder of their own. */
class FolderBlobs implements Blobs {
  constructor(
    readonly folder: string,
    readonly isTemporary: boolean,
  ) {}

  /** Readers see the earlier file or the whole new one, also if this process is killed. */
  async put(owner: string, name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const folder = this.#folderOf(owner);
    const path = join(folder, requireBlobName(name));
    const unfinished = join(folder, `${draft}${randomUUID()}`);
    const handle = await orFailed(async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await nameOwner(folder, owner);
      return open(unfinished, "wx", 0o600);
    });
    try {
      // What the content throws is the caller's; only what this place can't do is `StoreFailed`.
      for await (const bytes of content) await orFailed(() => handle.writeFile(bytes));
      await orFailed(() => rename(unfinished, path));
    } finally {
      await handle.close();
      await rm(unfinished, { force: true }).catch(() => {});
    }
  }

  async get(owner: string, name: string): Promise<Blob | undefined> {
    const path = join(this.#folderOf(owner), requireBlobName(name));
    const stats = await orFailed(() => unlessMissing(stat(path)));
    return stats && { size: stats.size, content: contentOf(path) };
  }

  async *files(owner: string): AsyncGenerator<BlobFile, void, undefined> {
    const folder = this.#folderOf(owner);
    for (const name of (await orFailed(() => unlessMissing(readdir(folder)))) ?? []) {
      if (name === ownerFile || name.startsWith(draft)) continue;
      const stats = await orFailed(() => unlessMissing(stat(join(folder, name))));
      if (stats !== undefined) yield { name, at: stats.mtimeMs };
    }
  }

  async deleteFile(owner: string, name: string): Promise<void> {
    const path = join(this.#folderOf(owner), requireBlobName(name));
    await orFailed(() => rm(path, { force: true }));
  }

  async *owners(before: number): AsyncGenerator<BlobOwner, void, undefined> {
    for (const name of await orFailed(() => readdir(this.folder))) {
      const path = join(this.folder, name, ownerFile);
      const stats = await orFailed(() => unlessMissing(stat(path)));
      if (stats !== undefined && stats.mtimeMs < before)
        yield { owner: await orFailed(() => readFile(path, "utf8")), since: stats.mtimeMs };
    }
  }

  async delete(owner: string): Promise<void> {
    await orFailed(() => rm(this.#folderOf(owner), { recursive: true, force: true, maxRetries: 3 }));
  }

  async close(): Promise<void> {
    if (this.isTemporary) await rm(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** No name of an owner leads out of the folder. */
  #folderOf(owner: string): string {
    return join(this.folder, createHash("sha256").update(owner).digest("hex"));
  }
}

/** Once, with the owner's first file; renamed into its place, so that no half name is ever there. */
async function nameOwner(folder: string, owner: string): Promise<void> {
  const path = join(folder, ownerFile);
  if ((await unlessMissing(stat(path))) !== undefined) return;
  const unfinished = join(folder, `${draft}${randomUUID()}`);
  await writeFile(unfinished, owner, { mode: 0o600 });
  await rename(unfinished, path);
}

async function* contentOf(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* createReadStream(path);
  } catch (cause) {
    throw failed(cause);
  }
}

async function unlessMissing<Result>(result: Promise<Result>): Promise<Result | undefined> {
  try {
    return await result;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** @throws StoreFailed */
async function orFailed<Result>(act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (cause) {
    throw failed(cause);
  }
}

const failed = (cause: unknown) =>
  new StoreFailed(`The files can't be kept: ${messageOf(cause)}. Check the disk and rights of \`folder\`.`, {
    cause,
  });

export const makeBlobs = (config: z.output<typeof configSchema>): BlobsBackend<Blobs> => ({
  name: "sample",
  open: async ({ temporary }) => {
    if (temporary) return new FolderBlobs(await mkdtemp(join(tmpdir(), "sample-")), true);
    await mkdir(config.folder, { recursive: true, mode: 0o700 });
    return new FolderBlobs(config.folder, false);
  },
});

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("blobs", makeBlobs(config)),
});
