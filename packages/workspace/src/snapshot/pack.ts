import { createHash } from "node:crypto";
import type { Sandbox } from "@ambit/core/plugin";
import { commandOf, stdinOf } from "../program/inside-program.js";
import { endOf, feed } from "../program/streams.js";
import { maxReportCharacters, reportIn, snapshotFailed } from "./report.js";

export interface SnapshotLimits {
  /** Files, folders and links. */
  readonly maxEntries: number;
  /** Of the archive, in bytes. */
  readonly maxBytes: number;
}

/** Which folders of a sandbox are copied: workspace and home, or one of them. */
export type SnapshotPart = "all" | "workspace" | "home";

/** The folders of a part, as seen inside. Pure. */
export function foldersOf({ workspace, home }: Pick<Sandbox, "workspace" | "home">, part: SnapshotPart) {
  return {
    ...(part === "home" ? {} : { workspace }),
    ...(part === "workspace" ? {} : { home }),
  };
}

/** A snapshot's archive, as it was written. */
export interface SnapshotFacts {
  /** Of the archive, in hex: what `unpackSnapshot` checks. */
  readonly sha256: string;
  /** Of the archive. */
  readonly bytes: number;
  /** Files, folders and links in it. */
  readonly entries: number;
  /** Devices, pipes and sockets, which aren't in it. */
  readonly skipped: number;
}

/**
 * Packs workspace and home of a sandbox, with links, modes and times of change. A program of Ambit reads them inside, as the
 * agent's user, so nothing leaves that the agent couldn't read itself. The archive is opaque: the runner counts its bytes and
 * computes its digest. What leads out of the sandbox, as a link, stays a link.
 *
 * Files that change meanwhile are packed as they are read: nothing should run in the sandbox.
 *
 * @param keep gets the archive, once, and rejects where it can't be kept: `(archive) => spool.add(archive)`, or
 * `(archive) => blobs.put(owner, name, archive)`. Where packing fails, the archive throws in the middle.
 * @param part Default: `all`.
 * @throws SnapshotFailed; what `keep` throws; the signal's reason
 */
export async function packSnapshot(
  sandbox: Sandbox,
  limits: SnapshotLimits,
  keep: (archive: AsyncIterable<Uint8Array>) => Promise<unknown>,
  signal: AbortSignal,
  part: SnapshotPart = "all",
): Promise<SnapshotFacts> {
  const input = await stdinOf("#snapshots", { action: "pack", ...foldersOf(sandbox, part), ...limits });
  const child = await sandbox.spawn(commandOf(sandbox, signal));
  const printed = endOf(child.stderr, maxReportCharacters);
  const fed = feed(child, input);
  const hash = createHash("sha256");
  let bytes = 0;
  let facts: SnapshotFacts | undefined;
  const archive = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of child.stdout) {
      bytes += piece.length;
      if (bytes > limits.maxBytes) throw snapshotFailed("too_large", "");
      hash.update(piece);
      yield piece;
    }
    const { code } = await child.exit;
    signal.throwIfAborted();
    const { entries, skipped } = reportIn(await printed, code);
    facts = { sha256: hash.digest("hex"), bytes, entries, skipped };
  };
  try {
    await keep(archive());
  } catch (error) {
    await child.kill();
    signal.throwIfAborted();
    throw error;
  } finally {
    await fed;
  }
  if (facts === undefined) throw new TypeError("a snapshot's archive wasn't read to its end");
  return facts;
}
