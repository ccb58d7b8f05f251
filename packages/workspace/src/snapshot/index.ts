/**
 * A sandbox's workspace and home as one opaque archive: `packSnapshot` makes it, `unpackSnapshot` puts it into another sandbox.
 *
 *     const facts = await packSnapshot(sandbox, limits, (archive) => blobs.put(owner, "snapshot", archive), signal);
 *     const kept = await blobs.get(owner, "snapshot");
 *     await unpackSnapshot(another, kept.content, facts, limits, signal);
 */

export { type KeptLimits, KeptSnapshots, type OpenSnapshot, type SnapshotDraft } from "./kept.js";
export { packSnapshot, type SnapshotFacts, type SnapshotLimits, type SnapshotPart } from "./pack.js";
export { unpackSnapshot } from "./unpack.js";
