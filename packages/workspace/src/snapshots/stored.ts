import { buffer } from "node:stream/consumers";
import { messageOf, NotFound, SnapshotFailed, StoreFailed } from "@ambit/core";
import {
  type JsonLimits,
  parseBoundedJson,
  type SnapshotInfo,
  snapshotIdSchema,
  snapshotInfoSchema,
} from "@ambit/core/contract";
import { z } from "zod";
import type { Blobs } from "../blobs.js";
import { ByteReader } from "../programs.js";

const maxUserMessages = 1_000;

const conversationSchema = z.strictObject({ harness: z.string().max(256), id: z.string().max(1_024) });
const userMessagesSchema = z.array(z.string().max(64)).max(maxUserMessages);

/** What is kept of a snapshot beside its archive. */
export const manifestSchema = z.strictObject({ version: z.literal(1), info: snapshotInfoSchema });

/** The state of its session besides the files, which is always encrypted. */
export const stateSchema = z.strictObject({
  conversation: conversationSchema.optional(),
  userMessages: userMessagesSchema,
  secrets: z.array(z.string()),
});

/**
 * The first line of an exported snapshot; its archive follows. The state's secrets aren't in it: they stay with the server that
 * had them.
 */
const exportSchema = z.strictObject({
  format: z.literal("ambit-snapshot"),
  version: z.literal(1),
  // These are as long as a request's, since lists of snapshots have them.
  info: snapshotInfoSchema.extend({ sessionId: z.string().max(256), sandbox: z.string().max(256) }),
  conversation: conversationSchema.optional(),
  userMessages: userMessagesSchema,
});
export type ExportHeader = z.infer<typeof exportSchema>;

/** Characters of that line, and of what is kept of the state: 1,000 digests, and credentials. */
export const maxHeaderBytes = 1024 * 1024;

/** Names of a project's blobs. */
export const blobNames = {
  manifest: (id: string) => `${id}.manifest`,
  state: (id: string) => `${id}.state`,
  archive: (id: string) => `${id}.archive`,
} as const;

/** The id in the name of such a blob. */
export function idIn(name: string, kind: keyof typeof blobNames): string | undefined {
  const [id = "", ...rest] = name.split(".");
  return /^[0-9a-f]{32}$/.test(id) && rest.join(".") === kind ? id : undefined;
}

/** What is kept: copies of sessions that their callers took, or the files of sessions whose server stopped. */
export type SnapshotKind = "snapshots" | "suspended";

/** The owner of a project's snapshots. No run's key is the same: a key ends with a letter, a digit, or one of `_.:-`. */
export function snapshotsOwner(kind: SnapshotKind, project: string | undefined): string {
  return JSON.stringify([kind, project ?? null]);
}

/** @param kind Default: any. */
export function ownsSnapshots(owner: string, kind?: SnapshotKind): boolean {
  const kinds = kind === undefined ? (["snapshots", "suspended"] as const) : [kind];
  return kinds.some((one) => owner.startsWith(`["${one}",`)) && owner.endsWith("]");
}

/** Undefined where there is none. @throws StoreFailed */
export async function infoOf(id: string, owner: string, blobs: Blobs): Promise<SnapshotInfo | undefined> {
  if (!isSnapshotId(id)) return undefined;
  const manifest = await blobs.get(owner, blobNames.manifest(id));
  return manifest && (await contentOf(id, manifest.content, manifestSchema)).info;
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

/** Limits of the header, which has 1,000 digests. A larger one is refused before it is parsed, since the parser's error would be as long. */
const headerLimits: JsonLimits = { maxLength: maxHeaderBytes, maxValues: 2_000, maxDepth: 4 };

/** The header of an exported snapshot, and its archive, which is read once. @throws SnapshotFailed */
export async function readExported(
  content: AsyncIterable<Uint8Array>,
): Promise<{ readonly header: ExportHeader; readonly archive: AsyncIterable<Uint8Array> }> {
  const reader = new ByteReader(content);
  const line = await reader.line(maxHeaderBytes).catch((cause: unknown) => {
    if (cause instanceof RangeError) throw notExported("its first line is missing or too long", cause);
    throw cause;
  });
  return { header: headerIn(line), archive: reader.remainder() };
}

function headerIn(line: string): ExportHeader {
  try {
    return exportSchema.parse(parseBoundedJson(line, headerLimits));
  } catch (cause) {
    throw notExported(messageOf(cause).slice(0, 200), cause);
  }
}

function notExported(why: string, cause?: unknown): SnapshotFailed {
  return new SnapshotFailed(
    `The body isn't a snapshot that this version of Ambit can read (${why}): send what GET /snapshots/{snapshotId}/archive gives.`,
    { cause },
  );
}
