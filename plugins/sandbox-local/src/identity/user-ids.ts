import { createServer, type Server } from "node:net";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

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

/**
 * Takes a user id that no other session on this host has, of any runner: the record is an abstract socket, which
 * exactly one process can hold and which the kernel takes back at any death.
 *
 * @throws SandboxFailed when all are taken.
 */
export async function leaseUserId({ first, count }: UserIdRange): Promise<UserIdLease> {
  // Not always the lowest: what a just ended session's id could still touch is left alone the longest.
  const start = Math.floor(Math.random() * count);
  for (let step = 0; step < count; step++) {
    const uid = first + ((start + step) % count);
    const record = await hold(uid);
    if (record === undefined) continue;
    let released: Promise<void> | undefined;
    return {
      uid,
      gid: uid,
      release() {
        released ??= new Promise<void>((resolve) => record.close(() => resolve()));
        return released;
      },
    };
  }
  const last = first + count - 1;
  throw new SandboxFailed(
    `All user ids from ${first} to ${last} are in use: close sessions, or set sandbox-local's userIds to a longer range`,
  );
}

async function hold(uid: number): Promise<Server | undefined> {
  const server = createServer((connection) => connection.destroy());
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(`\0ambit-user-${uid}`, () => resolve());
    });
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") return undefined;
    throw new SandboxFailed(`The user id ${uid} can't be reserved`, { cause: error });
  }
  server.unref();
  return server;
}
