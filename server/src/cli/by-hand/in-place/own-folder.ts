import { realpath, stat } from "node:fs/promises";
import { ConfigurationInvalid } from "../../../configuration/problems.js";

/** What a refusal says besides its reason. */
export interface FolderUse {
  /** What asks for the folder: `--in-place`. */
  readonly option: string;
  /** What the folder's owner would run. */
  readonly command: string;
  /** What else can be done. Absent: nothing. */
  readonly instead?: string;
}

/**
 * A folder of this host that may be a workspace itself, without links in its path.
 * @throws ConfigurationInvalid for one that isn't there, and for root
 */
export async function ownFolder(given: string, use: FolderUse): Promise<string> {
  const folder = await realpath(given).catch((cause: unknown) => {
    throw new ConfigurationInvalid(given, ["can't be read: name a folder that is there"], { cause });
  });
  const stats = await stat(folder);
  if (!stats.isDirectory()) throw new ConfigurationInvalid(given, ["is no folder: name one"]);
  if (process.getuid?.() === 0)
    throw new ConfigurationInvalid(use.option, [rootRefused(folder, stats.uid, use)]);
  return folder;
}

/** Files that the agent makes there would be the session's user's, and the folder's own would have to be given to it. Pure. */
export function rootRefused(folder: string, owner: number, { command, instead }: FolderUse): string {
  const fixes =
    owner === 0
      ? [`give ${folder} to an ordinary user (chown -R) and run ${command} as that user`]
      : [`run it as the folder's owner: sudo -u '#${owner}' ${command}`];
  if (instead !== undefined) fixes.push(instead);
  return `can't be used by root: as root, each session has a user of its own, who may not write your files: ${fixes.join("; or ")}`;
}
