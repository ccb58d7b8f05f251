import type { Server } from "node:net";
import type { ExposedHandlers } from "@ambit/backend-kit/http";
import type { Command, Evidence, Sandbox, SandboxSpec } from "@ambit/core/plugin";
import type { BridgeOptions } from "../options.js";
import type { BinaryPlatform, DirectPlatform, RemotePlatform } from "../platform.js";
import type { BridgeLink } from "./connection/connection.js";

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
