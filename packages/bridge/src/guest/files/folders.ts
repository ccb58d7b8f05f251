import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { homeName, workspaceName } from "../../messages.js";
import type { DaemonSettings } from "../settings.js";
import type { User } from "../user.js";
import type { Users } from "../users.js";

export interface Folders {
  readonly workspace: string;
  /** Group of what the runner writes there. Undefined if processes share the bridge's user. */
  readonly workspaceOwner: User | undefined;
  readonly home: string;
  /** Each process's home and scratch. */
  readonly processes: string;
}

export function makeFolders(
  { folder, workspace: access, hasFolders }: DaemonSettings,
  { agent, whyShared }: Users,
): Folders {
  const paths = {
    workspace: join(folder, workspaceName),
    home: join(folder, homeName),
    processes: join(folder, "processes"),
  };
  if (agent === undefined && access !== "write") {
    throw new Error(`the workspace can't be kept from processes that share the bridge's user: ${whyShared}`);
  }
  if (agent !== undefined) checkParents(folder);
  for (const path of hasFolders ? [paths.processes] : Object.values(paths)) mkdirSync(path, { mode: 0o700 });
  if (hasFolders) for (const path of [paths.workspace, paths.home]) chmodSync(path, 0o700);
  if (agent === undefined) return { ...paths, workspaceOwner: undefined };
  // Files get the mode 0640: the session's group may read root's files; others may read nothing.
  const workspaceOwner = access === "write" ? agent : { uid: 0, gid: access === "read" ? agent.gid : 0 };
  chownSync(paths.workspace, workspaceOwner.uid, workspaceOwner.gid);
  chownSync(paths.home, agent.uid, agent.gid);
  // The session's group may write to the workspace, and new files there belong to the group.
  chmodSync(paths.workspace, access === "write" ? 0o2770 : access === "read" ? 0o750 : 0o700);
  chmodSync(paths.processes, 0o711);
  return { ...paths, workspaceOwner };
}

/** Who may write to a folder may rename what is in it, unless it has the sticky bit: the next pipe would run its own file. */
function checkParents(folder: string): void {
  for (let path = folder; path !== dirname(path); ) {
    path = dirname(path);
    const { mode } = statSync(path);
    if ((mode & 0o002) !== 0 && (mode & 0o1000) === 0)
      throw new Error(
        `every user may rename ${folder}, since all may write to ${path}: set bridge.folder to one below folders that only root may write to, or chmod ${path} to 755 or 1777`,
      );
  }
}
