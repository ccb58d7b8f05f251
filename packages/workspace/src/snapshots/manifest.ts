import { snapshotInfoSchema } from "@ambit/core/contract";
import { z } from "zod";

const maxUserMessages = 1_000;

const conversationSchema = z.strictObject({ harness: z.string().max(256), id: z.string().max(1_024) });
const userMessagesSchema = z.array(z.string().max(64)).max(maxUserMessages);

/** What is kept of a snapshot beside its archive. */
export const manifestSchema = z.strictObject({ version: z.literal(1), info: snapshotInfoSchema });

/** What its session was besides its files; always encrypted. */
export const stateSchema = z.strictObject({
  conversation: conversationSchema.optional(),
  userMessages: userMessagesSchema,
  secrets: z.array(z.string()),
});

/**
 * The first line of an exported snapshot; its archive follows. The state's secrets aren't in it: they stay with the server that
 * had them.
 */
export const exportSchema = z.strictObject({
  format: z.literal("ambit-snapshot"),
  version: z.literal(1),
  // As long as a request's: lists of snapshots have them.
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

/** Of a project's snapshots. No run's key is one: those end with a letter, a digit, or one of `_.:-`. */
export function snapshotsOwner(kind: SnapshotKind, project: string | undefined): string {
  return JSON.stringify([kind, project ?? null]);
}

/** @param kind Default: any. */
export function ownsSnapshots(owner: string, kind?: SnapshotKind): boolean {
  const kinds = kind === undefined ? (["snapshots", "suspended"] as const) : [kind];
  return kinds.some((one) => owner.startsWith(`["${one}",`)) && owner.endsWith("]");
}
