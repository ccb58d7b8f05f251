import type { Server } from "node:net";
import { join } from "node:path/posix";
import type { Readable, Writable } from "node:stream";
import type { ExposedHandlers } from "@ambit/backend-kit/http";
import type { Boundary, Command, Evidence, Sandbox, SandboxFailed, SandboxSpec } from "@ambit/core/plugin";
import { z } from "zod";
import { homeName, workspaceName } from "./messages.js";

/** The bridge's settings, as part of a backend's configuration. */
export const bridgeSchema = z.strictObject({
  /** Absolute path of a folder in the sandbox that only the bridge writes to. It is created. */
  folder: z.string().startsWith("/").default("/tmp/ambit"),
  /** Node.js (18 or newer) in the sandbox: a name on the platform's `PATH`, or a path. */
  node: z.string().min(1).default("node"),
  /** Milliseconds without any pipe after which the sandbox is given up. */
  reconnectTimeoutMs: z.int().positive().default(60_000),
  /** Milliseconds of silence after which a pipe is considered dead. */
  heartbeatTimeoutMs: z.int().positive().default(20_000),
  /** Approximate bytes through one pipe before it is replaced: platforms log them as long as the pipe's command runs. */
  pipeBytes: z
    .int()
    .positive()
    .default(32 * 1024 * 1024),
  /** Milliseconds that the sandbox's processes outlive a dead runner. */
  orphanTimeoutMs: z.int().positive().default(120_000),
  /** The first user id for processes, if the bridge runs as root; some thousands follow. */
  firstUser: z.int().min(1_000).max(2_000_000_000).default(61_000),
  /** Bytes of the runner's files that are copied into a sandbox at most; a larger agent belongs in its image. */
  copyBytes: z
    .int()
    .nonnegative()
    .default(64 * 1024 * 1024),
});
export type BridgeOptions = z.output<typeof bridgeSchema>;

/**
 * A bidirectional pipe to a command in the sandbox: what is written is its standard input, what is read its
 * standard output. It must carry lines of UTF-8 below 16 KB without NUL, and nothing else.
 */
export interface Pipe {
  /** In pieces of any size. Ends or errors when the pipe is lost: the bridge opens another, and nothing is lost. */
  readonly output: ReadableStream<Uint8Array>;
  /** Complete lines, several at once, each with its line feed. Rejects if they may not have arrived. */
  write(lines: string): Promise<void>;
  /** Ends the command and frees the platform's resources. Safe to call twice; doesn't reject if it has already ended. */
  close(): Promise<void>;
}

/**
 * A bidirectional pipe to a command in the sandbox with the guarantees of a kernel pipe: any bytes, in order, without
 * loss, as long as the sandbox exists. It isn't replaced: its end is the end of the sandbox.
 */
export interface DirectPipe {
  /** The command's standard output. Ends, errors or closes when the pipe is lost. */
  readonly output: Readable;
  /** The command's standard input. Its end reaches the command. */
  readonly input: Writable;
  /** Frees the platform's resources. Safe to call twice; doesn't reject if it has already ended. */
  close(): Promise<void>;
}

/** The same for any bytes: no encoding, and so several times as fast. */
export interface BinaryPipe extends Omit<Pipe, "write"> {
  /** Any bytes, at most 256 KB, whose memory is used again once it has settled. Rejects if they may not have arrived. */
  write(bytes: Uint8Array): Promise<void>;
}

interface Platform {
  /**
   * Settles when commands can be started: its image is there, its container runs. Called once, before everything else, with no
   * time limit but the opening's own. Default: they can be started at once.
   *
   * @throws SandboxFailed when that will never be.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /** Writes one file, readable by everyone, and creates missing folders. */
  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Destroys the sandbox with everything in it. Safe to call twice. */
  destroy(): Promise<void>;
}

/** What a backend implements: three primitives on one sandbox that it has created. */
export interface RemotePlatform extends Platform {
  /**
   * Starts a command in the sandbox, with no terminal.
   *
   * @throws SandboxFailed when the sandbox itself is gone or can't be used any more: nothing is tried again. Whatever
   * else is thrown counts as a dropped connection, and is retried.
   */
  openPipe(argv: readonly [program: string, ...args: string[]], signal: AbortSignal): Promise<Pipe>;
}

/** The same for a platform whose pipes carry any bytes: a kubelet's, behind an API server. */
export interface BinaryPlatform extends Platform {
  /**
   * A pipe to the command of `firstCommandOf`, which has been given its input, whether or not all has arrived. It is used before
   * any other. Default: the guest daemon is uploaded, and started by the command of the first pipe that is opened.
   */
  readonly firstPipe?: BinaryPipe;
  /** @throws SandboxFailed as `openPipe` */
  openBinaryPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<BinaryPipe>;
}

/** The same for a platform whose pipes are binary and break only with the sandbox: several times as fast. */
export interface DirectPlatform extends Platform {
  /** Whether the command has been given the input of `directCommandOf`. Default: the bridge gives it. */
  readonly hasProgram?: boolean;
  /** Starts a command in the sandbox, with no terminal. Called once. Whatever is thrown fails the opening. */
  openDirectPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<DirectPipe>;
  /**
   * Why the pipe ended, such as a memory limit that the platform knows of. Called when it has ended; undefined: it
   * doesn't know. Default: the pipe's own error.
   */
  whyLost?(signal: AbortSignal): Promise<SandboxFailed | undefined>;
}

/** `scripts/docs/sandbox-options.mjs` makes the table in docs/write-a-backend.md from these sentences. */
export interface RemoteSandboxOptions {
  /** The three functions on a sandbox that the backend has created. `openRemoteSandbox` destroys it if it rejects. */
  readonly platform: RemotePlatform | BinaryPlatform | DirectPlatform;
  /** What `open` got. Its `id` names the sandbox's folder, and `environment.per-tool` in `required` rejects the opening where users can't be separated. */
  readonly spec: SandboxSpec;
  /** The bridge's settings, as `bridgeSchema` returns them. */
  readonly bridge: BridgeOptions;
  /**
   * What the receipt says of the sandbox: limits that were read back, its id. Texts, numbers and booleans by name, merged with the
   * bridge's `uid`, `bridge.ownUsers` and `bridge.node`. A function is called on each read, for what is known only later.
   */
  readonly evidence: Evidence | (() => Evidence);
  /**
   * Variables that the backend adds to those of a process, such as a proxy's. They take precedence. Called at each start.
   * Default: none.
   */
  readonly environment?: (command: Command) => Readonly<Record<string, string>>;
  /**
   * Placeholders of the session's `secrets` by name, where the backend hides them. Called on each read. Default: none.
   */
  readonly placeholders?: () => Readonly<Record<string, string>>;
  /**
   * `/proc`, `/tmp` and the like belong to this sandbox alone, so that the bridge, if it is root, may mount the former with
   * `hidepid=2` and isolate users in the others. On shared ones that would change the host. Default: `false`.
   */
  readonly ownSystem?: boolean;
  /**
   * Processes never share the bridge's user if it is root, even if their users can't be kept from seeing each other's processes.
   * Default: `false`, for images whose programs expect root.
   */
  readonly unprivileged?: boolean;
  /**
   * What the run's processes may do with the workspace. The runner can always read and write it. Without a user for each process,
   * `read` and `none` reject the opening with `SandboxFailed`. Default: `write`.
   */
  readonly workspace?: "write" | "read" | "none";
  /**
   * Workspace and home exist before the bridge, at the paths of `foldersOf`, and their files stay when it ends. Default: `false`.
   */
  readonly hasFolders?: boolean;
  /**
   * The sandbox's folder below `bridge.folder`. Use the same name in each where none shares a file system with another: what was
   * prepared in one then works in another. Default: the spec's `id`.
   */
  readonly folderName?: string;
  /**
   * A folder in the sandbox below which the spec's `requiredPaths` are already, each at its path on the runner, such as by a mount.
   * Default: they are copied, up to `bridge.copyBytes`; more rejects the opening with `SandboxFailed`.
   */
  readonly copyRoot?: string;
  /** The image as the platform was asked for it: `sandbox.image.name`. Default: it isn't known by a name. */
  readonly imageName?: string | undefined;
  /**
   * The platform's own service inside: TCP `ports` on which it accepts requests of every process, and its `files`, absolute
   * or below `~`. A bridge that is root closes both to everyone else, and reports ports that a process still reaches as
   * `facts.openPorts`. `scripts` are names of scripts in the folder for temporary files that the service writes if they are missing,
   * and executes: the bridge creates them empty. Default: none.
   */
  readonly supervisor?: {
    readonly ports: readonly number[];
    readonly files: readonly string[];
    readonly scripts?: readonly string[];
  };
  /**
   * The ports inside that the runner may connect to, such as the session's `boundary.inbound`. Called at each connection. Only
   * where the loopback inside is the sandbox's own. Default: the sandbox has no `connect`.
   */
  readonly inbound?: () => readonly number[];
  /**
   * For a sandbox that another runner may take over: the fence of this runner, its owner. With `resume`, which the
   * earlier runner's `resumption` was, the sandbox is continued; a higher fence since then rejects with `SandboxFailed`, and
   * a failed opening leaves the sandbox as it is. Needs `openPipe` or `openBinaryPipe`. Default: the sandbox ends with this runner.
   */
  readonly takeover?: { readonly fence: number; readonly resume?: BridgeResumption };
  /** The backend's network obeys `SandboxSpec.isUnclaimed`: nothing is reached until a run has the sandbox. Default: `false`. */
  readonly isClosedUnclaimed?: boolean;
}

/**
 * What another process needs to continue with a sandbox. It contains a key that, with the platform's, controls the
 * sandbox.
 */
export interface BridgeResumption extends BridgeLink {
  /** Digest of the runner's files that were copied. */
  readonly copied: readonly string[];
}

/** The port inside that all exposures share, and its listener. */
export interface OwnPort {
  readonly port: number;
  readonly listener: ExposedHandlers["listener"];
}

/** What the bridge's guest daemon reports about itself. It comes from the sandbox, so it proves nothing. */
export interface BridgeFacts {
  /** Whether each process gets its own user, and none sees another's processes: `environment.per-tool`. */
  readonly ownUsers: boolean;
  /** Why not, if it doesn't. */
  readonly whyShared: string | undefined;
  /** Ports of the platform's own service that a process of the sandbox can connect to, and why. */
  readonly openPorts: readonly number[];
  readonly whyOpen: string | undefined;
  /** The firewall that closes the others. */
  readonly closedBy: string | undefined;
  readonly searchPath: string;
  /** Version of Node.js inside. */
  readonly node: string;
}

export interface RemoteSandbox extends Sandbox {
  readonly facts: BridgeFacts;
  /**
   * Hands connections to the exposures' port, from now on, to a server that needn't listen (made with `allowHalfOpen`),
   * such as a boundary's proxy. It passes on what is meant for the exposures.
   *
   * @throws SandboxFailed
   */
  handOver(server: Server): Promise<OwnPort>;
  /**
   * Listens on the loopback inside, until the sandbox is closed. Each connection leads to a Unix socket inside that the guest
   * daemon can open.
   *
   * @returns the port. @throws SandboxFailed
   */
  forward(path: string): Promise<number>;
  /** Undefined without `takeover`, and over a direct pipe. */
  readonly resumption: BridgeResumption | undefined;
  /**
   * Detaches from it: files stay for its next owner, processes until `orphanTimeoutMs`. `close` does nothing
   * afterwards.
   */
  leave(): Promise<void>;
}

/** What decides how a sandbox's guest daemon is started. */
export type GuestOptions = Pick<
  RemoteSandboxOptions,
  | "bridge"
  | "folderName"
  | "ownSystem"
  | "supervisor"
  | "workspace"
  | "hasFolders"
  | "unprivileged"
  | "takeover"
> & { readonly spec: Pick<RemoteSandboxOptions["spec"], "id"> };

/** The key with which another process reaches the same daemon. */
export interface BridgeLink {
  readonly key: string;
  /** Identifies the daemon's process: a different one has lost what this one held. */
  readonly epoch: string;
}

/** The folders of a sandbox, as seen inside. */
export interface SessionFolders {
  /** Everything of the sandbox is below it. */
  readonly folder: string;
  readonly workspace: string;
  readonly home: string;
}

/** What decides where they are, as in `RemoteSandboxOptions`. */
interface FolderNames {
  readonly spec: { readonly id: string };
  readonly bridge: { readonly folder: string };
  readonly folderName?: string;
}

/** Pure. */
export function foldersOf({ spec, bridge, folderName = spec.id }: FolderNames): SessionFolders {
  const folder = join(bridge.folder, folderName);
  return { folder, workspace: join(folder, workspaceName), home: join(folder, homeName) };
}

const workspaceAccess = {
  on: "write",
  workspace: "write",
  readonly: "read",
  off: "none",
} as const satisfies Readonly<Record<Boundary["filesystem"]["mode"], GuestOptions["workspace"]>>;

/**
 * The options of a sandbox that shares no file system, processes or users with another, such as a container or a pod: paths
 * inside are the same in each, so that what was prepared in one works in another. Pure.
 */
export function ownSystemOptions(
  { id, boundary }: Pick<SandboxSpec, "id" | "boundary">,
  bridge: BridgeOptions,
): GuestOptions {
  return {
    spec: { id },
    folderName: "session",
    bridge,
    ownSystem: true,
    unprivileged: true,
    workspace: workspaceAccess[boundary.filesystem.mode],
  };
}
