import { randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isListening, listenAt } from "@ambit/backend-kit";
import { inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import { makePassage } from "../folders/data-folder.js";

interface UserIdRange {
  readonly first: number;
  readonly count: number;
}

/** A user id of the host that belongs to one session only. */
export interface UserIdLease {
  readonly uid: number;
  readonly gid: number;
  /** Safe to call twice. */
  release(): Promise<void>;
}

/** Prefix of a record that isn't complete yet. */
const unfinished = "new-";
/** How often the range is tried again when two runners asked for the same id at once and both withdrew. */
const rounds = 20;

/**
 * Reserves a user id that no other session on this host has, in any runner. The record is a socket in a folder that
 * only the runners' user can enter; it responds while its runner lives, and the kernel closes it when the runner ends
 * in any way.
 *
 * @param folder the same one for all runners of the host.
 * @throws SandboxFailed when all are in use, or the folder can't be used.
 */
export async function leaseUserId({ first, count }: UserIdRange, folder: string): Promise<UserIdLease> {
  const records = await openRecords(folder);
  try {
    for (let round = 0; round < rounds; round++) {
      if (round > 0) await delay(Math.random() * 20);
      let contested = false;
      // Not always the lowest, so that an id is reused as late as possible after its session ended.
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
 * Writes its own record first, then reads those of others: if two runners reserve the same id at the same time, at
 * least one of them sees the other and withdraws.
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

/** Whether another record of this id responds. Those that don't are removed, since each name is used once. */
async function isTaken(records: OpenFolder, uid: number, own?: string): Promise<boolean> {
  for (const name of await readdir(inFolder(records, "."))) {
    if (!name.startsWith(`${uid}-`) || name === own) continue;
    if (await isListening(records, name)) return true;
    await rm(inFolder(records, name), { force: true });
  }
  return false;
}
