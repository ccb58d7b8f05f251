import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { StoreFailed } from "@ambit/core";
import { type JsonLimits, outputFileSchema, parseBoundedJson } from "@ambit/core/contract";
import { readText } from "@ambit/core/plugin";
import type { Pack } from "tar-stream";
import { z } from "zod";
import { type Blob, type Blobs, looksSealed } from "../blobs.js";

/** What is kept of a run's outputs, as the file `manifest` beside them. */
const manifestSchema = z.strictObject({
  version: z.literal(1),
  /** Milliseconds since 1970. */
  createdAt: z.int(),
  files: z.array(
    outputFileSchema.extend({
      /** Name of the blob with its content. */
      name: z.string(),
    }),
  ),
  patch: z.strictObject({ size: z.int(), sha256: z.string() }).optional(),
});
export type OutputsManifest = z.infer<typeof manifestSchema>;

/** Names of an owner's blobs. */
export const blobNames = {
  manifest: "manifest",
  patch: "patch",
  bundle: "bundle",
  file: (index: number) => `file-${index}`,
} as const;

/** Limits of a manifest: 10,000 files with long paths. */
const manifestLimits: JsonLimits = { maxLength: 16 * 1024 * 1024, maxValues: 200_000, maxDepth: 4 };

/** The outputs of a run, as they are kept. */
export class KeptOutputs {
  readonly #blobs: Blobs;
  readonly #owner: string;

  private constructor(
    blobs: Blobs,
    owner: string,
    readonly manifest: OutputsManifest,
    /** Characters of the manifest. */
    readonly length: number,
  ) {
    this.#blobs = blobs;
    this.#owner = owner;
  }

  /** Undefined for a run without outputs. @throws Error where they can't be read */
  static async of(owner: string, blobs: Blobs): Promise<KeptOutputs | undefined> {
    const blob = await blobs.get(owner, blobNames.manifest);
    if (blob === undefined) return undefined;
    const { text, isWhole } = await readText(blob.content, manifestLimits.maxLength);
    if (!isWhole) throw new Error("the manifest of a run's outputs is too large");
    if (looksSealed(text)) {
      const message =
        "The run's files are encrypted: turn workspace.encrypt on in the server's configuration.";
      throw new StoreFailed(message, { retryable: false });
    }
    const manifest = manifestSchema.parse(parseBoundedJson(text, manifestLimits));
    return new KeptOutputs(blobs, owner, manifest, text.length);
  }

  /** Undefined where no file with this path left the workspace. */
  async file(path: string): Promise<Blob | undefined> {
    const kept = this.manifest.files.find((file) => file.path === path);
    return kept === undefined ? undefined : await this.#blobs.get(this.#owner, kept.name);
  }

  /** Undefined where the request asked for none. */
  async patch(): Promise<Blob | undefined> {
    return this.manifest.patch === undefined
      ? undefined
      : await this.#blobs.get(this.#owner, blobNames.patch);
  }

  /** The commit, as a bundle of git. Undefined where none was made. */
  async bundle(): Promise<Blob | undefined> {
    return await this.#blobs.get(this.#owner, blobNames.bundle);
  }

  /** Every file, as a tar archive. Nothing is opened before it is read. */
  archive(): Readable {
    return Readable.from(this.#archived());
  }

  async *#archived(): AsyncGenerator<Uint8Array, void, undefined> {
    // Loaded when it is needed: a server starts without it.
    const { default: tar } = await import("tar-stream");
    const archive = tar.pack();
    void this.#fill(archive).then(
      () => archive.finalize(),
      (error: unknown) => archive.destroy(error instanceof Error ? error : new Error(String(error))),
    );
    yield* Readable.from(archive);
  }

  async #fill(archive: Pack): Promise<void> {
    const { createdAt, files } = this.manifest;
    const mtime = new Date(createdAt);
    for (const { path, name, size, executable } of files) {
      const blob = await this.#blobs.get(this.#owner, name);
      if (blob === undefined) throw new Error(`the content of ${path} is missing`);
      const entry = archive.entry({ name: path, size, mode: executable ? 0o755 : 0o644, mtime });
      // If its reader leaves, both end: the content's file is closed, and the entry's error is handled.
      await pipeline(blob.content, entry);
    }
  }
}
