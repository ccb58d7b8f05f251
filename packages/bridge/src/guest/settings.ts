import { join } from "node:path";

/** What the runner starts the guest daemon with, as its arguments. */
export interface Settings {
  /** Only the bridge writes to it. */
  readonly folder: string;
  readonly orphanTimeoutMs: number;
  /** The first of the users that processes get, where the bridge may make them. */
  readonly firstUser: number;
  /** Whether `/proc` and `/tmp` are the sandbox's own, so that they may be changed to keep users apart. */
  readonly ownSystem: boolean;
  readonly supervisor: SupervisorSettings;
  readonly workspace: WorkspaceAccess;
  /** Whether processes get users of their own even where those see each other's processes. */
  readonly unprivileged: boolean;
  /** Whether another runner may come for the sandbox: without one, processes end and its files stay. */
  readonly resumable: boolean;
}

/** What the run's processes may do with the workspace. The runner's own files arrive there all the same. */
export type WorkspaceAccess = "write" | "read" | "none";

/** The platform's own service inside. */
export interface SupervisorSettings {
  /** TCP ports on which it accepts requests of every process. */
  readonly ports: readonly number[];
  /** Files and folders of its own, absolute or below `~`. */
  readonly files: readonly string[];
}

/** Users that tools take turns in. */
export const toolUsers = 2_000;

export function readSettings([
  folder,
  orphanTimeoutMs,
  firstUser,
  system,
  more = "{}",
]: readonly string[]): Settings {
  if (folder === undefined || !folder.startsWith("/"))
    throw new Error("The first argument is a folder's path");
  return {
    folder,
    orphanTimeoutMs: count(orphanTimeoutMs),
    firstUser: count(firstUser),
    ownSystem: system === "own-system",
    supervisor: { ports: [], files: [] },
    workspace: "write",
    unprivileged: false,
    resumable: false,
    // The runner's side wrote it.
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
