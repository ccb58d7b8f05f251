import { createHash, randomBytes } from "node:crypto";
import type { BlobsBackend } from "@ambit/core/plugin";
import type { Blobs } from "@ambit/workspace/blobs";

/** An empty place for files, for one test, and ways to break it. */
export interface BlobsRig {
  readonly backend: BlobsBackend;
  /** What may befall it. At least one: a place that can't fail isn't tried. */
  readonly faults: readonly BlobsFault[];
  close(): Promise<void>;
}

export interface BlobsFault {
  /** As in "403", or "cut half way". */
  readonly name: string;
  /** What fails meanwhile. A fault may spare small requests, such as the look for a file. */
  readonly breaks: "everything" | "content";
  /** Until the returned function is called. */
  begin(): Promise<() => Promise<void>>;
}

/** Content that isn't all the same, in pieces of uneven sizes, of which the length isn't told. */
export async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0, size = 1; at < bytes.length; at += size, size = Math.min(size * 3, 700_001))
    yield bytes.subarray(at, at + size);
}

export function randomContent(size: number): Buffer {
  return randomBytes(size);
}

/** In hex; of the whole content, which is read in pieces. */
export async function digestOf(
  content: AsyncIterable<Uint8Array> = piecesOf(new Uint8Array()),
): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of content) hash.update(bytes);
  return hash.digest("hex");
}

export async function ownersOf(blobs: Blobs, before = Number.MAX_SAFE_INTEGER): Promise<readonly string[]> {
  const owners: string[] = [];
  for await (const { owner } of blobs.owners(before)) owners.push(owner);
  return owners.sort();
}
