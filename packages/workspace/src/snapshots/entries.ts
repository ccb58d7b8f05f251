import { buffer } from "node:stream/consumers";
import { NotFound, StoreFailed } from "@ambit/core";
import { type SnapshotInfo, snapshotIdSchema } from "@ambit/core/contract";
import type { Blobs } from "../blobs/blobs.js";
import { blobNames, manifestSchema } from "./manifest.js";

/** Undefined where there is none. @throws StoreFailed */
export async function infoOf(id: string, owner: string, blobs: Blobs): Promise<SnapshotInfo | undefined> {
  if (!isSnapshotId(id)) return undefined;
  const found = await blobs.get(owner, blobNames.manifest(id));
  return found && (await contentOf(id, found.content, manifestSchema)).info;
}

/** A caller's word, before it is part of a file's name. */
export const isSnapshotId = (id: string) => snapshotIdSchema.safeParse(id).success;

/** @throws StoreFailed */
export async function contentOf<Content>(
  id: string,
  content: AsyncIterable<Uint8Array>,
  schema: { parse(value: unknown): Content },
): Promise<Content> {
  const text = (await buffer(content)).toString();
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    const message = `The snapshot '${id}' can't be read: it is damaged, or of another version of Ambit. Delete it (DELETE /snapshots/${id}).`;
    throw new StoreFailed(message, { cause, retryable: false });
  }
}

/** The manifest first: from then on, it isn't there. */
export async function remove(id: string, owner: string, blobs: Blobs): Promise<void> {
  for (const nameOf of [blobNames.manifest, blobNames.state, blobNames.archive])
    await blobs.deleteFile(owner, nameOf(id));
}

export function noSnapshot(id: string): NotFound {
  return new NotFound(`There is no snapshot '${id}': it was deleted, was too old, or never taken.`);
}

export async function* one(value: object): AsyncGenerator<Buffer, void, undefined> {
  yield Buffer.from(JSON.stringify(value));
}
