import { createHash } from "node:crypto";
import { SnapshotFailed } from "@ambit/core";
import { endOf, type Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import type { SnapshotProblem } from "../inside/snapshot/format.js";
import { commandOf, feed, stdinOf } from "../programs.js";

/**
 * A sandbox's workspace and home as one opaque archive: `packSnapshot` makes it, `unpackSnapshot` puts it into another sandbox.
 *
 *     const facts = await packSnapshot(sandbox, limits, (archive) => blobs.put(owner, "snapshot", archive), signal);
 *     const kept = await blobs.get(owner, "snapshot");
 *     await unpackSnapshot(another, kept.content, facts, limits, signal);
 */

/** Characters that are read of what the program prints to stderr. */
const maxReportCharacters = 8_000;

const countSchema = z.int().nonnegative();

/** The report of the program inside, which is checked since the sandbox's processes may have changed it. */
const reportSchema = z.discriminatedUnion("done", [
  z.strictObject({ done: z.literal(true), entries: countSchema, skipped: countSchema }),
  z.strictObject({
    done: z.literal(false),
    problem: z.enum(["too_many", "too_large", "too_deep", "unreadable", "damaged"]),
    what: z.string(),
  }),
]);

/** The counts that the program reports at its end. @throws SnapshotFailed */
function reportIn(
  printed: string,
  code: number | null,
): { readonly entries: number; readonly skipped: number } {
  const report = reportSchema.safeParse(jsonOf(printed.trimEnd().split("\n").at(-1) ?? ""));
  if (!report.success) {
    const cause = new Error(`exit code ${code}: ${printed}`);
    throw new SnapshotFailed(
      "The sandbox's files couldn't be packed or unpacked: the program that does it needs node in the sandbox, room on its disk and its memory, and ended early.",
      { cause },
    );
  }
  if (!report.data.done) throw snapshotFailed(report.data.problem, report.data.what);
  return report.data;
}

const messages: Readonly<Record<SnapshotProblem, string>> = {
  too_many:
    "The sandbox has more files and folders than a snapshot may have: remove some, or raise workspace.maxEntries of the server's configuration",
  too_large:
    "The sandbox's files are larger than a snapshot may be: remove some, such as caches of package managers, or raise workspace.maxSnapshotMiB of the server's configuration",
  too_deep: "The sandbox has more folders within each other than a snapshot may have: remove them",
  unreadable: "The sandbox has a file that its own user can't read: make it readable, or remove it",
  damaged: "The snapshot can't be unpacked",
};

/** @param what a path inside, or another detail. */
export function snapshotFailed(problem: SnapshotProblem, what: string): SnapshotFailed {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  const detail = what.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").slice(0, 400);
  return new SnapshotFailed(`${messages[problem]}${detail === "" ? "" : ` (${detail})`}.`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface SnapshotLimits {
  /** Files, folders and links. */
  readonly maxEntries: number;
  /** Bytes of the archive. */
  readonly maxBytes: number;
}

/** Which folders of a sandbox are copied: workspace and home, or one of them. */
export type SnapshotPart = "all" | "workspace" | "home";

/** The folders of a part, as seen inside. Pure. */
function foldersOf({ workspace, home }: Pick<Sandbox, "workspace" | "home">, part: SnapshotPart) {
  return {
    ...(part === "home" ? {} : { workspace }),
    ...(part === "workspace" ? {} : { home }),
  };
}

/** A snapshot's archive, as it was written. */
export interface SnapshotFacts {
  /** Digest of the archive, in hex, which `unpackSnapshot` checks. */
  readonly sha256: string;
  /** Bytes of the archive. */
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

/**
 * Puts a snapshot into workspace and home of a sandbox, before anything runs there. A program of Ambit writes them inside, as
 * the agent's user: the archive can't reach what the agent can't, and nothing outside of these two folders where the sandbox
 * isn't confined. A file that is there is replaced; others stay.
 *
 * The sandbox must have the same paths as the one that was packed, or programs in it that know their own path don't work.
 * If this fails, part of the archive is in the sandbox: close it.
 *
 * @param archive as `packSnapshot` made it.
 * @param facts of that archive; one with another digest fails. Undefined: it was never kept.
 * @param part Default: `all`. What else the archive has is skipped.
 * @throws SnapshotFailed; what `archive` throws; the signal's reason
 */
export async function unpackSnapshot(
  sandbox: Sandbox,
  archive: AsyncIterable<Uint8Array>,
  facts: Pick<SnapshotFacts, "sha256"> | undefined,
  limits: SnapshotLimits,
  signal: AbortSignal,
  part: SnapshotPart = "all",
): Promise<void> {
  const wish = await stdinOf("#snapshots", { action: "unpack", ...foldersOf(sandbox, part), ...limits });
  const hash = createHash("sha256");
  let problem: unknown;
  const input = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    yield* wish;
    try {
      for await (const piece of archive) {
        hash.update(piece);
        yield piece;
      }
    } catch (error) {
      problem = error;
      throw error;
    }
  };
  const child = await sandbox.spawn(commandOf(sandbox, signal));
  const printed = endOf(child.stderr, maxReportCharacters);
  const drained = endOf(child.stdout, 0);
  await feed(child, input());
  const { code } = await child.exit;
  await drained;
  signal.throwIfAborted();
  if (problem !== undefined) throw problem;
  reportIn(await printed, code);
  if (facts !== undefined && hash.digest("hex") !== facts.sha256)
    throw new SnapshotFailed("The snapshot was changed since it was made: its digest doesn't match.");
}
