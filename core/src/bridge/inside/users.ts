import { spawnSync } from "node:child_process";
import { type Settings, toolUsers } from "./settings.js";

export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Who processes run as. */
export interface Users {
  /** Undefined: everything runs as the bridge's own user. */
  readonly agent: User | undefined;
  readonly whyShared: string | undefined;
  /** A user that nobody else has, until it is given back. */
  take(): { readonly user: User | undefined; giveBack(): void };
}

/** Looks, by doing it, whether each process can have a user of its own whose processes no other user sees. */
export function findUsers({ firstUser, ownProc }: Settings): Users {
  const agent = { uid: firstUser, gid: firstUser };
  const whyShared = whyNotOwnUsers(agent, ownProc);
  if (whyShared !== undefined) {
    const shared = { user: undefined, giveBack: () => undefined };
    return { agent: undefined, whyShared, take: () => shared };
  }
  const taken = new Set<number>();
  let next = 0;
  return {
    agent,
    whyShared,
    take: () => {
      if (taken.size === toolUsers) throw new Error(`${toolUsers} processes run already`);
      do next = (next + 1) % toolUsers;
      while (taken.has(next));
      const number = next;
      taken.add(number);
      // The session's group: what is in the workspace is everybody's of the session.
      const user = { uid: firstUser + 1 + number, gid: agent.gid };
      return { user, giveBack: () => void taken.delete(number) };
    },
  };
}

function whyNotOwnUsers(user: User, ownProc: boolean): string | undefined {
  if (process.getuid?.() !== 0) return "the platform runs commands as an ordinary user";
  if (!hidesProcesses(user)) {
    // A platform that gives less than the right to mount keeps it as it is.
    if (ownProc) spawnSync("mount", ["-o", "remount,hidepid=2", "/proc"], { stdio: "ignore" });
    if (!hidesProcesses(user))
      return "its users see each other's processes, and /proc can't be mounted with hidepid=2";
  }
  return undefined;
}

/** With a control: the user that may not see this process sees its own. */
function hidesProcesses(user: User): boolean {
  const script = `cat /proc/self/cmdline > /dev/null && ! cat /proc/${process.pid}/cmdline > /dev/null 2>&1`;
  const { status } = spawnSync("/bin/sh", ["-c", script], { ...user, stdio: "ignore" });
  return status === 0;
}
