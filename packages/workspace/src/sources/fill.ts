import { createHash } from "node:crypto";
import type { SourceFailed } from "@ambit/core";
import type { Source, SourceReceipt } from "@ambit/core/contract";
import type { FileEntry, Sandbox } from "@ambit/core/plugin";
import {
  ArchiveDamaged,
  ArchiveTooLarge,
  type LeftOut,
  type PreparedSource,
  placeOf,
  type SourceEntry,
  sourceFailed,
  TarHeaderTooLong,
} from "./source.js";

/** Bytes and files that are written at a time. */
const batch = { bytes: 4 * 1024 * 1024, files: 200 } as const;
/** Paths that the receipt names. */
const maxNamed = 100;

/** What puts one source's files at hand. */
export type Prepare = (
  index: number,
  source: Source,
  left: { readonly files: number; readonly bytes: number },
) => Promise<PreparedSource>;

/** Limits of one request's sources. */
interface SourceLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/**
 * Puts the sources into a new workspace, in their order.
 * @param later paths of the request's files, which are written after them
 * @throws SourceFailed; SandboxFailed where the sandbox can't write; the signal's reason; what reading a source's bytes failed with
 */
export async function fillFrom(
  sources: readonly Source[],
  sandbox: Pick<Sandbox, "workspace" | "writeFiles">,
  limits: SourceLimits,
  signal: AbortSignal,
  prepare: Prepare,
  later: readonly string[] = [],
): Promise<readonly SourceReceipt[]> {
  const left = { files: limits.maxFiles, bytes: limits.maxBytes };
  const receipts: SourceReceipt[] = [];
  const places = new Places();
  for (const path of later) places.add(path);
  for (const [index, source] of sources.entries()) {
    signal.throwIfAborted();
    const prepared = await prepare(index, source, left);
    const filling = new Filling(index, source, sandbox, left, places);
    try {
      for await (const entry of prepared.entries) {
        signal.throwIfAborted();
        await filling.add(entry);
      }
      for await (const entry of prepared.repository ?? []) {
        signal.throwIfAborted();
        await filling.put(entry);
      }
      receipts.push({ ...(await filling.end()), ...prepared.facts });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ArchiveTooLarge) throw tooLarge(index);
      if (error instanceof TarHeaderTooLong) throw sourceFailed(index, "invalid", headerTooLong, error);
      if (error instanceof ArchiveDamaged) throw sourceFailed(index, "invalid", damaged(source), error.cause);
      throw error;
    } finally {
      await prepared.close();
    }
  }
  return receipts;
}

function damaged(source: Source): string {
  const format = source.type === "archive" ? source.format : source.type;
  return `can't be read as ${format}: it is damaged, or of another format`;
}

/** What has come into the workspace, of all sources: a path is a file or a folder. */
class Places {
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** @returns the path that is a file of one entry and a folder of another; undefined if there is none. */
  add(path: string): string | undefined {
    if (this.#folders.has(path)) return path;
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
      const folder = path.slice(0, end);
      if (this.#files.has(folder)) return folder;
      this.#folders.add(folder);
    }
    this.#files.add(path);
    return undefined;
  }
}

/** One source on its way into the workspace. */
class Filling {
  readonly #hash = createHash("sha256");
  readonly #place: string;
  readonly #paths = new Set<string>();
  readonly #omitted: { path: string; reason: LeftOut["reason"] }[] = [];
  #entries: FileEntry[] = [];
  #waiting = 0;
  #files = 0;
  #bytes = 0;

  constructor(
    readonly index: number,
    readonly source: Source,
    readonly sandbox: Pick<Sandbox, "workspace" | "writeFiles">,
    readonly left: { files: number; bytes: number },
    readonly places: Places,
  ) {
    this.#place = placeOf(source);
  }

  async add(entry: SourceEntry | LeftOut): Promise<void> {
    if ("leftOut" in entry) {
      if (this.#omitted.length < maxNamed) this.#omitted.push({ path: entry.leftOut, reason: entry.reason });
      return;
    }
    const { path, content, executable } = entry;
    if (this.#paths.has(path)) throw sourceFailed(this.index, "invalid", `has '${path}' twice`);
    this.#paths.add(path);
    const both = this.places.add(this.#place + path);
    if (both !== undefined)
      throw sourceFailed(
        this.index,
        "invalid",
        `has '${path}', and '${both}' is both a file and a folder, of the sources or harnessFiles`,
      );
    this.#files += 1;
    this.#bytes += content.length;
    this.#hash.update(`${path}\0${executable ? "x" : "-"}\0${content.length}\0`).update(content);
    await this.put(entry);
  }

  /** Writes an entry within the limits. The receipt doesn't count it. */
  async put({ path, content, executable }: SourceEntry): Promise<void> {
    this.left.files -= 1;
    this.left.bytes -= content.length;
    if (this.left.files < 0 || this.left.bytes < 0) throw tooLarge(this.index);
    this.#entries.push({ path: `${this.sandbox.workspace}/${this.#place}${path}`, content, executable });
    this.#waiting += content.length;
    if (this.#waiting >= batch.bytes || this.#entries.length >= batch.files) await this.#write();
  }

  async end(): Promise<SourceReceipt> {
    await this.#write();
    return {
      type: this.source.type,
      files: this.#files,
      bytes: this.#bytes,
      sha256: this.#hash.digest("hex"),
      ...(this.#omitted.length === 0 ? {} : { omitted: this.#omitted }),
    };
  }

  async #write(): Promise<void> {
    const entries = this.#entries;
    this.#entries = [];
    this.#waiting = 0;
    if (entries.length > 0) await this.sandbox.writeFiles(entries);
  }
}

const headerTooLong =
  "has more than 256 KiB of attributes or names of one file, or 4 KiB of all files: make it without extended attributes (`tar --no-xattrs`)";

function tooLarge(index: number): SourceFailed {
  return sourceFailed(
    index,
    "too_large",
    "is too large: leave files out, or raise workspace.maxSourceFiles and workspace.maxSourceMiB of the server's configuration",
  );
}
