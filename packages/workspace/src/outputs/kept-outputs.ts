import { Readable } from "node:stream";
import { StoreFailed } from "@ambit/core";
import { type JsonLimits, parseBoundedJson } from "@ambit/core/contract";
import { readText } from "@ambit/core/plugin";
import type { Blob, Blobs } from "../blobs/blobs.js";
import { looksSealed } from "../blobs/sealing.js";
import { blobNames, manifestSchema, type OutputsManifest } from "./manifest.js";

/** Of a manifest: 10,000 files with long paths. */
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
    const found = await blobs.get(owner, blobNames.manifest);
    if (found === undefined) return undefined;
    const { text, isWhole } = await readText(found.content, manifestLimits.maxLength);
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
    const found = this.manifest.files.find((file) => file.path === path);
    return found === undefined ? undefined : await this.#blobs.get(this.#owner, found.name);
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
    const { archiveOf } = await import("./archive-of-files.js");
    yield* archiveOf(this.manifest, (name) => this.#blobs.get(this.#owner, name));
  }
}
