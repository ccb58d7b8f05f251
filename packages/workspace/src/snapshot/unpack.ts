import { createHash } from "node:crypto";
import { SnapshotFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { commandOf, stdinOf } from "../program/inside-program.js";
import { endOf, feed } from "../program/streams.js";
import { foldersOf, type SnapshotFacts, type SnapshotLimits, type SnapshotPart } from "./pack.js";
import { maxReportCharacters, reportIn } from "./report.js";

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
