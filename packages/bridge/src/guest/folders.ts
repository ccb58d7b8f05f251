import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { homeName, workspaceName } from "../messages.js";
import type { Settings } from "./settings.js";
import type { Users } from "./users.js";

export interface Folders {
  readonly workspace: string;
  readonly home: string;
  /** Each process's home and scratch. */
  readonly processes: string;
}

export function makeFolders({ folder }: Settings, { agent }: Users): Folders {
  const folders = {
    workspace: join(folder, workspaceName),
    home: join(folder, homeName),
    processes: join(folder, "processes"),
  };
  for (const path of Object.values(folders)) mkdirSync(path, { mode: 0o700 });
  if (agent !== undefined) {
    for (const path of [folders.workspace, folders.home]) chownSync(path, agent.uid, agent.gid);
    // The session's group writes to the workspace, and what is made there stays the group's.
    chmodSync(folders.workspace, 0o2770);
    chmodSync(folders.processes, 0o711);
  }
  return folders;
}
