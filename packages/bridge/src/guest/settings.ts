import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** The arguments with which the runner starts the guest daemon. */
export interface DaemonSettings {
  /** Only the bridge writes to it. */
  readonly folder: string;
  readonly orphanTimeoutMs: number;
  /** The first of the user ids for processes, if the bridge may use them. */
  readonly firstUser: number;
  /** Whether `/proc` and `/tmp` belong to the sandbox alone, so that they may be changed to isolate users. */
  readonly ownSystem: boolean;
  readonly supervisor: SupervisorSettings;
  readonly workspace: WorkspaceAccess;
  /** Whether workspace and home exist already, and their files stay at the end. */
  readonly hasFolders: boolean;
  /** Whether processes get separate users even if those see each other's processes. */
  readonly unprivileged: boolean;
  /** Whether another runner may take over the sandbox: until then, processes end and files stay. */
  readonly resumable: boolean;
}

/** What the run's processes may do with the workspace. The runner can always write there. */
type WorkspaceAccess = "write" | "read" | "none";

/** The platform's own service inside. */
export interface SupervisorSettings {
  /** TCP ports on which it accepts requests of every process. */
  readonly ports: readonly number[];
  /** Its own files and folders, absolute or below `~`. */
  readonly files: readonly string[];
  /** Names of scripts in `$TMPDIR` or `/tmp` that it writes only if they are missing, and executes. */
  readonly scripts: readonly string[];
}

/** Number of user ids for tools, which are reused. */
export const toolUsers = 2_000;

export function readSettings([
  folder,
  orphanTimeoutMs,
  firstUser,
  system,
  more = "{}",
]: readonly string[]): DaemonSettings {
  if (folder === undefined || !folder.startsWith("/"))
    throw new Error("The first argument is a folder's path");
  return {
    folder,
    orphanTimeoutMs: count(orphanTimeoutMs),
    firstUser: count(firstUser),
    ownSystem: system === "own-system",
    supervisor: { ports: [], files: [], scripts: [] },
    workspace: "write",
    hasFolders: false,
    unprivileged: false,
    resumable: false,
    // Written by the runner's side.
    ...JSON.parse(more),
  };
}

export function socketOf(folder: string): string {
  return join(folder, "bridge.sock");
}

function count(text: string | undefined): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value <= 0) throw new Error(`${text} isn't a number`);
  return value;
}

const bytes = 16;

/** Random text of the kernel's: 32 hexadecimal digits. To load `node:crypto` would delay the guest daemon's start by 4 ms. */
export function randomText(): string {
  const device = openSync("/dev/urandom", "r");
  try {
    const text = Buffer.alloc(bytes);
    readSync(device, text);
    return text.toString("hex");
  } finally {
    closeSync(device);
  }
}
