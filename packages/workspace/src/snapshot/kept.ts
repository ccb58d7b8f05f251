import { createHash, randomBytes } from "node:crypto";
import { chmod, type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, messageOf, SnapshotFailed } from "@ambit/core";
import { evicted, type KeptEntry } from "./eviction.js";
import { archiveIn, factsOf, type KeptFacts, trailerOf } from "./kept-file.js";

export interface KeptLimits {
  /** Snapshots of all projects. */
  readonly maxSnapshots: number;
  /** Of all projects. */
  readonly maxBytes: number;
  /** Milliseconds without a use after which one is removed. */
  readonly maxUnusedMs: number;
  /** Milliseconds after which one isn't used any more, however often it was. */
  readonly rebuildAfterMs: number;
}

/** A snapshot whose file is open: it can be read even if it is removed meanwhile. */
export interface OpenSnapshot {
  readonly facts: KeptFacts;
  /** For one reader. */
  readonly archive: AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Of a file that isn't complete, and milliseconds after which it belongs to nobody. */
const draft = { prefix: ".draft-", maxAgeMs: 24 * 60 * 60 * 1_000 } as const;
const ending = ".snapshot";

/**
 * Snapshots in a folder, each project's apart. Several processes may share the folder: one appears there whole, and is never
 * changed.
 */
export class KeptSnapshots {
  constructor(
    readonly folder: string,
    readonly limits: KeptLimits,
  ) {}

  /**
   * Undefined where there is none that may be used; the caller closes it.
   * @param project undefined for requests that name none
   */
  async find(project: string | undefined, key: string): Promise<OpenSnapshot | undefined> {
    const handle = await open(this.#pathOf(project, key), "r").catch((error: unknown) => {
      if (codeOf(error) === "ENOENT") return undefined;
      throw failed("read", error);
    });
    if (handle === undefined) return undefined;
    try {
      const facts = await factsOf(handle);
      const age = facts === undefined ? 0 : Date.now() - facts.builtAt;
      if (facts !== undefined && age >= 0 && age <= this.limits.rebuildAfterMs) {
        // When it was used last.
        const now = new Date();
        await handle.utimes(now, now);
        return opened(handle, facts);
      }
      await handle.close();
      return undefined;
    } catch (error) {
      await handle.close();
      throw failed("read", error);
    }
  }

  /** For a new one; the caller closes it. @throws SnapshotFailed */
  async draft(project: string | undefined): Promise<SnapshotDraft> {
    const folder = this.#folderOf(project);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = join(folder, `${draft.prefix}${randomBytes(8).toString("hex")}`);
      const keep = (key: string) => this.#keep(path, this.#pathOf(project, key));
      return new SnapshotDraft(await open(path, "wx+", 0o600), path, this.limits.maxBytes, keep);
    } catch (error) {
      throw failed("written", error);
    }
  }

  /** One that turned out to be damaged. */
  async remove(project: string | undefined, key: string): Promise<void> {
    await rm(this.#pathOf(project, key), { force: true });
  }

  async #keep(path: string, kept: string): Promise<void> {
    await chmod(path, 0o400);
    await rename(path, kept);
    const { maxSnapshots, maxBytes, maxUnusedMs } = this.limits;
    const before = Date.now() - maxUnusedMs;
    const all = await this.#entries();
    for (const { path: old } of evicted(all, kept, { maxSnapshots, maxBytes, before }))
      await rm(old, { force: true });
  }

  async #entries(): Promise<readonly KeptEntry[]> {
    const found: KeptEntry[] = [];
    for (const project of await namesIn(this.folder)) {
      for (const name of await namesIn(join(this.folder, project))) {
        const path = join(this.folder, project, name);
        const stats = await stat(path).catch(() => undefined);
        if (stats === undefined) continue;
        const { size: bytes, mtimeMs: usedAt } = stats;
        if (name.endsWith(ending)) found.push({ path, project, bytes, usedAt });
        else if (name.startsWith(draft.prefix) && usedAt < Date.now() - draft.maxAgeMs)
          await rm(path, { force: true });
      }
    }
    return found;
  }

  #folderOf(project: string | undefined): string {
    const named = project === undefined ? "" : `project ${project}`;
    return join(this.folder, createHash("sha256").update(named).digest("hex"));
  }

  #pathOf(project: string | undefined, key: string): string {
    if (!/^[0-9a-f]{64}$/.test(key)) throw new TypeError("the key of a snapshot is a digest");
    return join(this.#folderOf(project), `${key}${ending}`);
  }
}

/** A snapshot on its way: nobody else sees it before it is kept. */
export class SnapshotDraft {
  #isKept = false;

  constructor(
    readonly handle: FileHandle,
    readonly path: string,
    readonly maxBytes: number,
    readonly publish: (key: string) => Promise<void>,
  ) {}

  /** @throws SnapshotFailed where it can't be written; what the archive throws */
  async write(archive: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const piece of archive) await this.#append(piece);
  }

  /** For one reader, before it is closed. */
  read({ bytes }: Pick<KeptFacts, "bytes">): AsyncIterable<Uint8Array> {
    return archiveIn(this.handle, bytes);
  }

  /** False where it is larger than everything that may be kept. @throws SnapshotFailed */
  async keep(key: string, facts: KeptFacts): Promise<boolean> {
    if (facts.bytes > this.maxBytes) return false;
    await this.#append(trailerOf(facts));
    try {
      await this.publish(key);
    } catch (error) {
      throw failed("written", error);
    }
    this.#isKept = true;
    return true;
  }

  /** Removes it, unless it is kept. */
  async close(): Promise<void> {
    await this.handle.close();
    if (!this.#isKept) await rm(this.path, { force: true });
  }

  async #append(bytes: Uint8Array): Promise<void> {
    try {
      await this.handle.writeFile(bytes);
    } catch (error) {
      throw failed("written", error);
    }
  }
}

function opened(handle: FileHandle, facts: KeptFacts): OpenSnapshot {
  return { facts, archive: archiveIn(handle, facts.bytes), close: () => handle.close() };
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw error;
  });
}

function failed(what: "read" | "written", error: unknown): SnapshotFailed {
  const cause = new Error(messageOf(error), { cause: error });
  return new SnapshotFailed(
    `A prepared environment couldn't be ${what} (${codeOf(error) ?? "unknown error"}): check the server's data folder and its disk.`,
    { cause },
  );
}
