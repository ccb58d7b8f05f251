/** What the runner and the guest daemon agree on: its settings, its requests, the names of its folders. */

import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** Version of the protocol between the two halves. */
export const protocolVersion = 1;

/** Paths below the bridge's folder, known to both halves. */
export const workspaceName = "workspace";
export const homeName = "home";

/** Descriptor of the guest daemon that the command of a first pipe waits for: it ends when nothing holds it any more. */
export const pipeOfFirstCommand = 3;

/** First message of a channel, from the runner, by the channel's kind. */
export interface Requests {
  /** streams: standard input in; standard output and error out. */
  readonly run: {
    readonly argv: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly cwd?: string | undefined;
    readonly role: "agent" | "tool";
  };
  /** main stream in: the content. */
  readonly write: { readonly path: string; readonly executable: boolean };
  /** main stream out: the content. */
  readonly read: { readonly path: string };
  /** Unpacks an archive below a folder. main stream in: the archive, where it wasn't uploaded to a path. */
  readonly unpack: { readonly archive?: string; readonly into: string };
  /**
   * Listens on a port of the sandbox's loopback, but on none of these; each connection is a channel of kind `connection`, or
   * with `to` one to a Unix socket inside.
   */
  readonly listen: { readonly except: readonly number[]; readonly to?: string };
  /** Connects to a server on the sandbox's loopback. main stream: the connection, once the reply says that it is made. */
  readonly enter: { readonly port: number };
  readonly facts: Readonly<Record<string, never>>;
  /** What is in the session's folders, and the number of its processes. */
  readonly contents: Readonly<Record<string, never>>;
  /** Ends every process and the bridge itself. */
  readonly shutdown: Readonly<Record<string, never>>;
}

/** Later messages of the runner on a `run` channel. */
interface KillMessage {
  readonly kill: "SIGTERM" | "SIGKILL";
}

/** A channel's first message. The runner wrote it: the guest daemon trusts the runner's types. */
export function requestOf<Kind extends keyof Requests>(_kind: Kind, message: unknown): Requests[Kind] {
  return message as Requests[Kind];
}

export function killMessage(message: unknown): KillMessage | undefined {
  const hasKill = typeof message === "object" && message !== null && "kill" in message;
  return hasKill && (message.kill === "SIGTERM" || message.kill === "SIGKILL")
    ? { kill: message.kill }
    : undefined;
}

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
