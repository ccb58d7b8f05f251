import { join } from "node:path/posix";
import { homeName, workspaceName } from "./messages.js";

/** The folders of a sandbox, as seen inside. */
export interface SessionFolders {
  /** Everything of the sandbox is below it. */
  readonly folder: string;
  readonly workspace: string;
  readonly home: string;
}

/** What decides where they are, as in `RemoteSandboxOptions`. */
export interface FolderNames {
  readonly spec: { readonly id: string };
  readonly bridge: { readonly folder: string };
  readonly folderName?: string;
}

/** Pure. */
export function foldersOf({ spec, bridge, folderName = spec.id }: FolderNames): SessionFolders {
  const folder = join(bridge.folder, folderName);
  return { folder, workspace: join(folder, workspaceName), home: join(folder, homeName) };
}
