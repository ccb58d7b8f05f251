import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { isolateTmp, removeFilesOf } from "./files/shared-folders.js";
import { runAs } from "./run-as.js";
import { type DaemonSettings, toolUsers } from "./settings.js";
import type { User } from "./user.js";

/** The users that processes run as. */
export interface Users {
  /** Undefined: everything runs as the bridge's user. */
  readonly agent: User | undefined;
  /** Why users aren't isolated, or there are none. */
  readonly whyShared: string | undefined;
  /** A user without other processes. It is returned when its processes have ended. */
  take(): { readonly user: User | undefined; giveBack(): Promise<void> };
}

/** Tests whether each process can have a separate user, whose processes no other user sees. */
export function findUsers({ firstUser, ownSystem, unprivileged }: DaemonSettings): Users {
  const agent = { uid: firstUser, gid: firstUser };
  const whyNone = whyNoUsers(agent);
  const whyShared = whyNone ?? whyNotApart(agent, ownSystem);
  if (whyNone !== undefined || (whyShared !== undefined && !unprivileged)) {
    const shared = { user: undefined, giveBack: () => Promise.resolve() };
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
      // The session's group: the workspace is shared by all processes of the session.
      const user = { uid: firstUser + 1 + number, gid: agent.gid };
      const giveBack = async () => {
        await removeFilesOf(user);
        taken.delete(number);
      };
      return { user, giveBack };
    },
  };
}

function whyNoUsers(user: User): string | undefined {
  if (process.getuid?.() !== 0) return "the platform runs commands as an ordinary user";
  if (!seesProcessesOf(user))
    return "processes of other users can't be started, or not be seen, and so not be ended";
  return undefined;
}

function whyNotApart(user: User, ownSystem: boolean): string | undefined {
  if (!hidesProcesses(user)) {
    // Without the right to mount, it stays as it is.
    if (ownSystem) spawnSync("mount", ["-o", "remount,hidepid=2,gid=0", "/proc"], { stdio: "ignore" });
    if (!hidesProcesses(user))
      return "its users see each other's processes, and /proc can't be mounted with hidepid=2";
  }
  return isolateTmp(user, { ...user, uid: user.uid + 1 }, ownSystem);
}

/** With a control: the user that must not see this process sees its own. */
function hidesProcesses(user: User): boolean {
  // The shell itself reads: each further program would delay the start.
  const see =
    'sees() { words=; read -r words < "$1"; [ -n "$words" ]; }; sees /proc/self/cmdline && ! sees "/proc/$0/cmdline"';
  return runAs(user, see, `${process.pid}`);
}

function seesProcessesOf(user: User): boolean {
  let child: ChildProcess;
  try {
    child = spawn("/bin/sleep", ["10"], { ...user, stdio: "ignore" });
  } catch {
    // In a user namespace that doesn't have the user, such as bubblewrap's, Node throws.
    return false;
  }
  // A pid that it then doesn't have.
  child.on("error", () => undefined);
  const isSeen = child.pid !== undefined && existsSync(`/proc/${child.pid}/status`);
  child.kill("SIGKILL");
  return isSeen;
}
