import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "@ambit/core/plugin";
import { z } from "zod";
import { removeGroups } from "../cgroup/session-groups.js";
import { deadRunners } from "../folders/runner-folder.js";
import { groupsRecord } from "../folders/session-folder.js";
import type { Trash } from "../folders/trash.js";
import { killMarked, markOf } from "../process/marked-processes.js";

export interface ReapedLeftovers {
  readonly runners: number;
  readonly processes: number;
}

/**
 * Ends and removes what dead runners left in the data folder, never what belongs to a live one. What can't be ended or
 * removed is recorded and left; it doesn't fail this start.
 */
export async function reap(dataFolder: string, trash: Trash): Promise<ReapedLeftovers> {
  let processes = 0;
  const dead = await deadRunners(dataFolder);
  for (const { key, path } of dead) {
    try {
      processes += await killMarked(markOf(key));
      for (const session of await sessionsIn(path)) await removeGroups(await recordedGroups(session));
      await trash.discard(path, false);
    } catch (error) {
      trash.note(path, error);
    }
  }
  return { runners: dead.length, processes };
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
