import type { Server } from "node:net";
import type { ExposedHandlers } from "@ambit/backend-kit/http";
import type { Command, Evidence, Sandbox, SandboxSpec } from "@ambit/core/plugin";
import type { BridgeOptions } from "../options.js";
import type { BinaryPlatform, DirectPlatform, RemotePlatform } from "../platform.js";
import type { BridgeLink } from "./connection/connection.js";

export interface RemoteSandboxOptions {
  readonly platform: RemotePlatform | BinaryPlatform | DirectPlatform;
  readonly spec: SandboxSpec;
  readonly bridge: BridgeOptions;
  /**
   * The backend's evidence about the sandbox: limits that were read back, its supervisor. Merged with the bridge's. A function
   * is called on each read, for what is known only later.
   */
  readonly evidence: Evidence | (() => Evidence);
  /** Placeholders of the session's `secrets`, where the backend hides them. Called on each read. */
  readonly placeholders?: () => Readonly<Record<string, string>>;
  /**
   * The sandbox's folder below `bridge.folder`. The same in each, where none shares a file system with another: what was
   * prepared in one then works in another. Default: the spec's id.
   */
  readonly folderName?: string;
  /**
   * Whether `/proc`, `/tmp` and the like belong to the sandbox alone, so that the bridge, if it is root, may mount the
   * former with `hidepid=2` and isolate users in the others. On shared ones that would change the host. Default false.
   */
  readonly ownSystem?: boolean;
  /**
   * The platform's own service inside: TCP ports on which it accepts requests of every process, and its files, absolute
   * or below `~`. If the bridge is root, it restricts both to root, and reports ports that are still reachable. `scripts`
   * are names of scripts in the folder for temporary files that the service writes if they are missing, and executes:
   * the bridge creates them empty. Default none.
   */
  readonly supervisor?: {
    readonly ports: readonly number[];
    readonly files: readonly string[];
    readonly scripts?: readonly string[];
  };
  /**
   * Whether processes never share the bridge's user if it is root, even if their users can't be prevented from seeing
   * each other's processes. Default false: they then share it, for images whose programs expect that.
   */
  readonly unprivileged?: boolean;
  /**
   * What the run's processes may do with the workspace: anything but `write` needs separate users, or the opening
   * fails. The runner can always read and write it. Default `write`.
   */
  readonly workspace?: "write" | "read" | "none";
  /**
   * Whether the platform has workspace and home already: they exist before the bridge, and their files stay when it ends.
   * Default false.
   */
  readonly hasFolders?: boolean;
  /**
   * Folder in the sandbox below which the spec's `requiredPaths` are already, each at its path on the runner. Default:
   * they are copied.
   */
  readonly copyRoot?: string;
  /** The image as the platform was asked for it. Absent: it isn't known by a name. */
  readonly imageName?: string | undefined;
  /**
   * For a sandbox that another runner may take over: the fence of this runner, its owner. With `resume`, from
   * the earlier runner, it continues in the existing sandbox. Default: the sandbox ends with this runner.
   */
  readonly takeover?: { readonly fence: number; readonly resume?: BridgeResumption };
  /** Whether the backend's network obeys `SandboxSpec.isUnclaimed`. Default false. */
  readonly isClosedUnclaimed?: boolean;
  /**
   * The ports inside that the runner may connect to. Called at each connection, for a session's that gets a prepared sandbox.
   * Only where the loopback inside is the sandbox's own. Default: the sandbox has no `connect`.
   */
  readonly inbound?: () => readonly number[];
  /** Variables that the backend adds to those of a process, and which take precedence. Called at each start. */
  readonly environment?: (command: Command) => Readonly<Record<string, string>>;
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
