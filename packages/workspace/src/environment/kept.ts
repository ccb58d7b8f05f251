import { createHash, randomBytes } from "node:crypto";
import { chmod, type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, messageOf, SnapshotFailed } from "@ambit/core";
import { sourceReceiptSchema } from "@ambit/core/contract";
import { entriesToRemove, type KeptEntry } from "@ambit/core/plugin";
import { z } from "zod";

const count = z.int().nonnegative();
const factsSchema = z.strictObject({
  /** As `SnapshotFacts`. */
  sha256: z.string(),
  bytes: count,
  entries: count,
  skipped: count,
  /** Milliseconds since 1970. */
  builtAt: z.number(),
  /** The sources that its workspace began with. */
  sources: z.array(sourceReceiptSchema),
});
/** What is known of a kept snapshot. */
export type KeptFacts = z.infer<typeof factsSchema>;

/** Digits at a file's end, which say how many bytes the facts before them have. */
const lengthDigits = 12;
/** Sources can have thousands of omitted paths. */
const maxFactsBytes = 16 * 1_048_576;
const chunkBytes = 1_048_576;

/** What comes after the archive in a file: one file, so that it appears and goes as a whole. */
function trailerOf(facts: KeptFacts): Buffer {
  const text = Buffer.from(JSON.stringify(facts));
  return Buffer.concat([text, Buffer.from(String(text.length).padStart(lengthDigits))]);
}

/** Undefined for a file that is no whole snapshot. */
async function factsOf(handle: FileHandle): Promise<KeptFacts | undefined> {
  const { size } = await handle.stat();
  if (size < lengthDigits) return undefined;
  const length = Number(await text(handle, size - lengthDigits, lengthDigits));
  const at = size - lengthDigits - length;
  if (!Number.isSafeInteger(length) || length <= 0 || length > maxFactsBytes || at < 0) return undefined;
  const facts = factsSchema.safeParse(jsonOf(await text(handle, at, length)));
  return facts.success && facts.data.bytes === at ? facts.data : undefined;
}

/** The archive of an open file, once. */
async function* archiveIn(handle: FileHandle, bytes: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes; ) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, bytes - at));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new Error("a kept snapshot is shorter than it was");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function text(handle: FileHandle, at: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at);
  return buffer.toString("utf8", 0, bytesRead);
}

function jsonOf(read: string): unknown {
  try {
    return JSON.parse(read);
  } catch {
    return undefined;
  }
}

interface KeptLimits {
  /** Snapshots of all projects. */
  readonly maxSnapshots: number;
  /** Bytes of all projects' snapshots. */
  readonly maxBytes: number;
  /** Milliseconds without a use after which one is removed. */
  readonly maxUnusedMs: number;
  /** Milliseconds after which one isn't used any more, however often it was. */
  readonly rebuildAfterMs: number;
}

/** A snapshot whose file is open: it can be read even if it is removed meanwhile. */
interface OpenSnapshot {
  readonly facts: KeptFacts;
  /** For one reader. */
  readonly archive: AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** The name of a file that isn't complete begins with the prefix. After so many milliseconds no process writes to it any more. */
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

  /** Opens a file for a new snapshot; the caller closes it. @throws SnapshotFailed */
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

  /** Removes a snapshot that turned out to be damaged. */
  async remove(project: string | undefined, key: string): Promise<void> {
    await rm(this.#pathOf(project, key), { force: true });
  }

  async #keep(path: string, kept: string): Promise<void> {
    await chmod(path, 0o400);
    await rename(path, kept);
    const { maxSnapshots: max, maxBytes, maxUnusedMs } = this.limits;
    const before = Date.now() - maxUnusedMs;
    const limits = { max, maxBytes, before, newest: kept };
    for (const path of entriesToRemove(await this.#entries(), limits)) await rm(path, { force: true });
  }

  /** Each is named by its path. */
  async #entries(): Promise<readonly KeptEntry[]> {
    const entries: KeptEntry[] = [];
    for (const project of await namesIn(this.folder)) {
      for (const name of await namesIn(join(this.folder, project))) {
        const path = join(this.folder, project, name);
        const stats = await stat(path).catch(() => undefined);
        if (stats === undefined) continue;
        const { size: bytes, mtimeMs: usedAt } = stats;
        if (name.endsWith(ending)) entries.push({ name: path, project, bytes, usedAt });
        else if (name.startsWith(draft.prefix) && usedAt < Date.now() - draft.maxAgeMs)
          await rm(path, { force: true });
      }
    }
    return entries;
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
class SnapshotDraft {
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

  /** The archive, for one reader, before the draft is closed. */
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
