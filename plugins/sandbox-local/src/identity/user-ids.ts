import { randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isListening, listenAt } from "@ambit/backend-kit";
import { inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import { makePassage } from "../folders/data-folder.js";

export interface UserIdRange {
  readonly first: number;
  readonly count: number;
}

/** A user id of the host that is this session's alone. */
export interface UserIdLease {
  readonly uid: number;
  readonly gid: number;
  /** Safe to call twice. */
  release(): Promise<void>;
}

/** A record that isn't one yet. */
const unfinished = "new-";
/** How often the range is gone through anew when two asked for the same id at once and both gave way. */
const rounds = 20;

/**
 * Takes a user id that no other session on this host has, of any runner. The record is a socket in a folder that only
 * the runners' user can enter; it answers while its runner lives, and the kernel takes it back at any death.
 *
 * @param folder the same one for all runners of the host.
 * @throws SandboxFailed when all are taken, or the folder can't be used.
 */
export async function leaseUserId({ first, count }: UserIdRange, folder: string): Promise<UserIdLease> {
  const records = await openRecords(folder);
  try {
    for (let round = 0; round < rounds; round++) {
      if (round > 0) await delay(Math.random() * 20);
      let contested = false;
      // Not always the lowest: what a just ended session's id could still touch is left alone the longest.
      const start = Math.floor(Math.random() * count);
      for (let step = 0; step < count; step++) {
        const lease = await take(records, first + ((start + step) % count));
        if (typeof lease === "object") return lease;
        contested ||= lease === "contested";
      }
      if (!contested) break;
    }
  } catch (error) {
    throw new SandboxFailed(`No user id can be reserved (${codeOf(error) ?? "unknown"})`, { cause: error });
  } finally {
    await records.handle.close();
  }
  const last = first + count - 1;
  throw new SandboxFailed(
    `All user ids from ${first} to ${last} are in use: close sessions, or set sandbox-local's userIds to a longer range`,
  );
}

async function openRecords(folder: string): Promise<OpenFolder> {
  try {
    await makePassage(folder, 0o700);
    return await openFolder(folder);
  } catch (error) {
    throw new SandboxFailed(
      `The folder for the records of user ids, ${folder}, can't be used (${codeOf(error) ?? "it is another user's"}): set sandbox-local's userIds.records to one that all runners of this host share`,
      { cause: error },
    );
  }
}

/**
 * First the own record, then a look at those of others: of two who take the same id at the same time, at least one
 * sees the other, and gives way.
 */
async function take(records: OpenFolder, uid: number): Promise<UserIdLease | "taken" | "contested"> {
  if (await isTaken(records, uid)) return "taken";
  const name = `${uid}-${randomBytes(8).toString("hex")}`;
  // Under its own name only once it answers, or it would look like a dead runner's.
  const server = await listenAt(records, `${unfinished}${name}`);
  await rename(inFolder(records, `${unfinished}${name}`), inFolder(records, name));
  let released: Promise<void> | undefined;
  const release = () => {
    released ??= (async () => {
      await rm(join(records.path, name), { force: true });
      await new Promise<void>((resolve) => server.close(() => resolve()));
    })();
    return released;
  };
  if (await isTaken(records, uid, name)) {
    await release();
    return "contested";
  }
  return { uid, gid: uid, release };
}

/** Whether another record of this id answers. Those that don't are removed: each name is used once. */
async function isTaken(records: OpenFolder, uid: number, own?: string): Promise<boolean> {
  for (const name of await readdir(inFolder(records, "."))) {
    if (!name.startsWith(`${uid}-`) || name === own) continue;
    if (await isListening(records, name)) return true;
    await rm(inFolder(records, name), { force: true });
  }
  return false;
}
