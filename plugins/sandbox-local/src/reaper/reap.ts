import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "@ambit/core/plugin";
import { z } from "zod";
import { removeGroups } from "../cgroup/session-groups.js";
import { deadForMs, deadRunners } from "../folders/runner-folder.js";
import { continuedMark, groupsRecord } from "../folders/session-folder.js";
import type { Trash } from "../folders/trash.js";
import { killMarked, markOf } from "../process/marked-processes.js";

export interface ReapedLeftovers {
  readonly runners: number;
  readonly processes: number;
  /** Sessions whose files wait for the next runner that has them. */
  readonly waiting: number;
}

/**
 * Ends and removes what dead runners left in the data folder, never what belongs to a live one. What can't be ended or
 * removed is recorded and left; it doesn't fail this start.
 *
 * @param takeoverMs how long the files of named sessions wait for a runner that goes on with them.
 */
export async function reap(dataFolder: string, trash: Trash, takeoverMs: number): Promise<ReapedLeftovers> {
  let [processes, waiting] = [0, 0];
  const dead = await deadRunners(dataFolder);
  for (const { key, path } of dead) {
    try {
      processes += await killMarked(markOf(key));
      const sessions = await sessionsIn(path);
      for (const session of sessions) await removeGroups(await recordedGroups(session));
      const continued = sessions.filter((session) => existsSync(join(session, continuedMark)));
      if (continued.length > 0 && (await deadForMs(path)) < takeoverMs) {
        waiting += continued.length;
        for (const session of sessions) if (!continued.includes(session)) await trash.discard(session, false);
      } else await trash.discard(path, false);
    } catch (error) {
      trash.note(path, error);
    }
  }
  return { runners: dead.length, processes, waiting };
}

/** Ends what is left of a dead runner's session besides its files. */
export async function endLeftover(runnerKey: string, session: string, id: string): Promise<void> {
  await killMarked(markOf(runnerKey, id));
  await removeGroups(await recordedGroups(session));
}

async function sessionsIn(path: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
  } catch (error) {
    // Another start is reaping it at the same time.
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** Only the runner can write into a session's own folder, so the record can be trusted. */
async function recordedGroups(session: string): Promise<readonly string[]> {
  try {
    return z.array(z.string()).parse(JSON.parse(await readFile(join(session, groupsRecord), "utf8")));
  } catch (error) {
    // No limits, or the runner died while it wrote, before it made the first group.
    if (codeOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}
