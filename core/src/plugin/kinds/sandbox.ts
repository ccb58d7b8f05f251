import type { Duplex } from "node:stream";
import type { Boundary } from "../../boundary.js";
import type { Capability, Credential, CredentialForm, Evidence } from "../../contract/index.js";
import type { SandboxFailed } from "../../errors.js";
import type { Actor, ActorGap } from "../actor.js";
import type { Log, Scope } from "../scope.js";
import type { UpstreamProxy } from "../upstream-proxy.js";

/**
 * Where the programs in a sandbox come from: the host's files, visible at the same paths; an image, to which a few
 * megabytes of the host's files are copied; or an image beside which they are mounted, however large they are.
 */
export type Rootfs = "host" | "image" | "image-with-mounts";

/** A credential that programs in the sandbox send to some hosts without being able to read it. */
export interface HiddenCredential
  extends Readonly<Partial<Omit<Credential, "name" | "value" | "hosts" | "as">>> {
  /** Unique in a run: the variable that holds it. */
  readonly name: string;
  readonly value: string;
  /** The hosts that it may be sent to: canonical `name` (port 443) or `name:port`. Never empty. */
  readonly hosts: readonly string[];
  /** The header that carries it. Default: any header that model providers accept keys in. */
  readonly as?: CredentialForm;
}

/** `true` where the credential stays outside; else a gap's reason and fix. */
export type Hiding = true | Pick<ActorGap, "reason" | "fix">;

/** `true` where programs in the sandbox can read all; else a gap's reason and fix. */
export type Readability = true | Pick<ActorGap, "reason" | "fix">;

/** A new value of a credential, or why there is none: a text that programs in the sandbox may read. */
export type RefreshedSecret =
  | {
      readonly ok: true;
      readonly value: string;
      /** Milliseconds since 1970. */
      readonly expiresAt: number;
      /**
       * By credential: the values so far that the session still knows, with this one. Responses of its hosts must contain
       * none of them, nor the value that it began with.
       */
      readonly known: Readonly<Record<string, readonly string[]>>;
    }
  | { readonly ok: false; readonly reason: string };

/** A `fetch` handler, as in the Fetch standard: one request in, one response out. */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

/** One decision about one connection that reached the boundary's proxy. */
export interface ConnectionDecision {
  /** `host:port` as the client named it. */
  readonly target: string;
  readonly allowed: boolean;
  /** The reason, which names the rule. */
  readonly reason: string;
  /** Why an allowed connection failed, such as a name that doesn't resolve. Absent: it didn't, as far as is known. */
  readonly failure?: string | undefined;
  /** With `failure`: the connection was reported when it was opened, and isn't counted again. */
  readonly isReported?: true | undefined;
  /** For a refusal that a caller or deployer could lift: part of the run's result, as a warning or as its failure. */
  readonly gap?: ActorGap;
}

/**
 * A file or folder of the host that programs in the sandbox need: visible at the same path, read-only; in a sandbox with
 * an image, a copy or a mount below `ImageRootfs.copyRoot`.
 */
export interface RequiredPath {
  /** Absolute, on the runner. */
  readonly path: string;
  /** What it is, for errors: "Gemini CLI". */
  readonly what: string;
  /** Whether the agent also starts in a sandbox that doesn't show it. Default: false. */
  readonly isOptional?: boolean;
}

export interface SandboxSpec {
  /** The sandbox's name in labels, folders and reapers: unique on this runner, `[A-Za-z0-9_-]{1,64}`. */
  readonly id: string;
  readonly boundary: Boundary;
  /** Every capability that this sandbox must enforce. `open` enforces all or rejects. */
  readonly required: readonly Capability[];
  /** The runner's files that the agent needs, in the form that the backend's `rootfs` determines. */
  readonly requiredPaths: readonly RequiredPath[];
  /** Credentials to hide, which the backend's `hides` accepted. Default: none. */
  readonly secrets?: readonly HiddenCredential[];
  /**
   * Asks the platform for a new value of one of `secrets` that has `refresh`. When it resolves, the run's output is
   * redacted of the value. The backend calls it before the value it has expires, for one request on behalf of all that
   * wait, and sends no value that has expired. Never rejects. Absent: none of them has `refresh`.
   */
  refreshSecret?(name: string): Promise<RefreshedSecret>;
  /**
   * Set if another runner may take the sandbox over later. It increases with each owner, and the sandbox obeys only the
   * owner with the highest one. Default: the sandbox ends with this runner.
   */
  readonly fence?: number;
  /**
   * `Sandbox.remains` of a runner that ended without closing the sandbox: its workspace and home become this one's. The
   * backend ends what still runs there. `open` rejects if they are gone, or if that runner lives. Default: workspace and home
   * are empty.
   */
  readonly remains?: string | undefined;
  /** The deployer's proxy, through which the boundary's own proxy connects. Default: it connects directly. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /**
   * An absolute path of the runner's host, without links: this folder is the workspace itself, and stays when the sandbox is
   * closed. Its processes can't write to what git keeps in it. Only where the backend has `opensFolders`. Default: a new folder.
   */
  readonly workspaceFolder?: string | undefined;
  /** Only where the backend's `layers` support the boundary. Default: workspace and home are empty. */
  readonly layer?: LayerUse;
  /** Called for every connection that reaches the boundary's proxy, including repeats. */
  onDecision(decision: ConnectionDecision): void;
  /**
   * Called when the sandbox can no longer enforce or record its boundary, such as when its proxy fails: the run that has
   * it fails with this error, and no other run gets it. From the failure on, the backend must let nothing through.
   */
  onFailure?(failure: SandboxFailed): void;
  /** Whether the sandbox belongs to no run yet: its proxy then refuses every connection. Default: it belongs to one. */
  isUnclaimed?(): boolean;
  readonly log: Log;
}

/** Properties of a sandbox with an image. */
export interface ImageRootfs {
  /** The image as it was asked for, such as `node:22`. Absent: it isn't known by a name. */
  readonly name?: string;
  /** `PATH` as the image sets it: where programs are looked up by name. */
  readonly searchPath: string;
  /** Absolute. Below it lie copies or mounts of `SandboxSpec.requiredPaths`, each at its path on the runner. */
  readonly copyRoot: string;
  /** Whether they are mounts: the backend's `rootfs` is `image-with-mounts`. */
  readonly mounted: boolean;
}

/**
 * A TCP connection from this host to the runner, by its two ends. Both addresses and both ports count: a caller chooses
 * its own, and several connections can have the same two ports.
 */
export interface LocalConnection {
  /** The runner's own address: IPv4, IPv6, or IPv4-mapped, as Node names it. */
  readonly localAddress: string;
  readonly localPort: number;
  /** The caller's address. */
  readonly remoteAddress: string;
  readonly remotePort: number;
}

export interface SandboxBackend extends Actor {
  /** Default `host`. */
  readonly rootfs?: Rootfs;
  /**
   * The image of its sandboxes, as it is configured: `node:22`. A request may ask for it by `environment.image`. Absent: they
   * have none that is known by a name.
   */
  readonly image?: string | undefined;
  /** Whether a folder of the runner's host can be a workspace. Default: no. */
  readonly opensFolders?: true;
  /**
   * Whether `open` accepts the credential under this boundary: inside is a placeholder, which is replaced on
   * the way to one of its hosts, and only as its other fields say. Absent: it accepts none. Pure.
   */
  hides?(credential: HiddenCredential, boundary: Boundary): Hiding;
  /**
   * Whether the programs in its sandboxes can read these paths of this host, by their permissions. Absent: they can.
   * Synchronous and cheap.
   */
  reads?(paths: readonly RequiredPath[]): Readability;
  /**
   * Whether a process of one of its sandboxes made this connection, according to the kernel; true if that
   * can't be determined. Such callers may neither start nor end runs. Absent: its processes can't reach this host.
   */
  madeConnection?(connection: LocalConnection): Promise<boolean>;
  /** Applies every limit or rejects (`SandboxFailed`); never opens something weaker, never falls back to the host. */
  open(spec: SandboxSpec, scope: Scope): Promise<Sandbox>;
  /** For remote sandboxes that outlive their runner. Absent: they end with it. */
  readonly takeover?: SandboxTakeover;
  /** Removes what `Sandbox.remains` names, which no runner uses. Succeeds if it doesn't exist. Present if sandboxes have `remains`. */
  discardRemains?(remains: string): Promise<void>;
  /** For platforms that keep prepared files. Absent: each sandbox gets a copy of them. */
  readonly layers?: SandboxLayers;
  /** Closes what it holds besides sessions, after the last session has ended. Abandoned when the signal aborts. */
  close?(signal: AbortSignal): Promise<void>;
}

export interface SandboxTakeover {
  /**
   * Takes over a sandbox that another runner opened, under the same id, boundary and requirements: `spec.fence` is
   * higher than that one's. The boundary is proven again, as in `open`. Processes that the earlier runner started
   * inside are ended, files stay, and that runner can no longer reach the sandbox, even if it is alive.
   *
   * @param handover of that runner's `Sandbox`.
   * @throws SandboxFailed when the sandbox is gone, is another one than was asked for, or has an owner of a higher fence.
   */
  takeOver(spec: SandboxSpec, handover: string, scope: Scope): Promise<Sandbox>;
  /** Removes a sandbox that no runner uses, unless its owner has a higher fence. Succeeds if it doesn't exist. */
  discard(spec: Pick<SandboxSpec, "id" | "fence" | "log">, handover: string): Promise<void>;
}

/** How often limits of `resources` kept processes from something. */
export interface LimitHits {
  /** Processes or threads that couldn't be started. */
  readonly processes: number;
  /** Processes that were killed for the memory of all. */
  readonly memory: number;
}

/** What is in a sandbox, as seen from outside its processes. */
export interface SandboxContents {
  /** Paths of files below `workspace` and `home`, as seen inside; the first thousand. */
  readonly files: readonly string[];
  /** Its live processes, without the backend's own. */
  readonly processes: number;
}

export interface Sandbox {
  /** Absolute path of the session's workspace, as seen inside. Exists after `open`, and is empty unless it begins with a layer. */
  readonly workspace: string;
  /** Absolute path of the agent's home, as seen inside. Outlives the run, ends with the session. */
  readonly home: string;
  readonly confinement: "confined" | "unconfined";
  /** Set exactly when the backend's `rootfs` isn't `host`. */
  readonly image?: ImageRootfs;
  /** The placeholder of each of the spec's `secrets`, by name. */
  readonly placeholders?: Readonly<Record<string, string>>;
  /** What was observed of this sandbox: when it opened, and of its first process before the first instruction. */
  readonly evidence: Evidence;
  /** How often its processes have reached the limits so far. Synchronous and cheap. Absent: not known. */
  limitHits?(): LimitHits;
  /** Present only where `SandboxSpec.isUnclaimed` is obeyed. Absent: no agent is started in it ahead of a run. */
  contents?(): Promise<SandboxContents>;
  /** The unit of confinement: each process is isolated as far as `environment.per-tool` promises. */
  spawn(command: Command): Promise<Process>;
  /** Writes without following links that lead out of `workspace` and `home`. */
  writeFiles(files: readonly FileEntry[]): Promise<void>;
  /** @throws SandboxFailed when the file isn't there or can't be read. */
  readFile(path: string): Promise<Uint8Array>;
  /** Makes a handler reachable from inside only. The backend checks the token on every request: see `presentsToken`. */
  expose(handler: FetchHandler): Promise<Exposure>;
  /**
   * A connection to a server on a port of `boundary.inbound`, on the loopback inside. What answers is the sandbox's, and may
   * be anything. Present where `inbound.ports` is required.
   * @throws SandboxFailed for any other port, and where nothing inside listens
   */
  connect?(port: number): Promise<Duplex>;
  /** What `takeOver` needs. It holds keys: keep it encrypted. Absent: this sandbox can't be taken over. */
  readonly handover?: string;
  /** Instead of `close`: files stay for the next owner. Present if `handover` is. */
  leave?(): Promise<void>;
  /**
   * Instead of `close`: ends it, and keeps workspace and home as the layer. Where there is one of this name by then, that one
   * stays. Present if `SandboxSpec.layer` is to be made.
   * @throws SandboxFailed; nothing is kept then
   */
  keepAsLayer?(): Promise<void>;
  /**
   * Names its files for `SandboxSpec.remains`, where they outlive this runner's sudden end: the next one of the same host can
   * go on with them. Present only if `SandboxSpec.fence` was. Absent: they end with this runner.
   */
  readonly remains?: string;
  /** Leaves nothing: no process, folder, socket, group, route. Skips what another runner took over. Safe to call twice. */
  close(): Promise<void>;
}

export interface Exposure {
  /** As seen inside, without a path: `http://127.0.0.1:41234`. Two exposures may share it, and differ by token. */
  readonly url: string;
  /** Sent as `Authorization: Bearer …`, or as an API key: `x-api-key`, `x-goog-api-key`. */
  readonly token: string;
  close(): Promise<void>;
}

export interface Command {
  /** Program and arguments; never a shell line. The program is a path, or a name looked up in `env.PATH`. */
  readonly argv: readonly [program: string, ...args: string[]];
  /** Complete: nothing is inherited. The backend adds only what confinement needs (proxy variables, HOME, TMPDIR). */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute, as seen inside. Default: the workspace. */
  readonly cwd?: string;
  /** `agent`: the session's home. `tool`: its own home and scratch, removed with the process. Default `tool`. */
  readonly role?: "agent" | "tool";
  /** Kills the process and all it started. */
  readonly signal?: AbortSignal;
}

export interface Process {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** What was observed of this process before its first instruction. */
  readonly evidence: Evidence;
  /** Never rejects. Settles when the process and everything it started have ended. */
  readonly exit: Promise<Exit>;
  /** Ends the process and all it started. Default `SIGKILL`. Safe after the exit. */
  kill(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface FileEntry {
  /** Absolute, inside `workspace` or `home`. Missing folders are created. */
  readonly path: string;
  readonly content: string | Uint8Array;
  /** Default false. */
  readonly executable?: boolean;
}

/**
 * Prepared files that the platform keeps, and that new sandboxes begin with, without a copy for each. A layer is the workspace
 * and the home of one sandbox. It never changes: what a sandbox that began with it writes, no other sees.
 */
export interface SandboxLayers {
  /**
   * What new sandboxes have installed: the same text only for the same programs, such as an image's id. Undefined: not known
   * before one is open.
   * @throws SandboxFailed; the signal's reason
   */
  system(signal: AbortSignal): Promise<string | undefined>;
  /** Whether sandboxes with this boundary can begin with a layer, and become one. Synchronous. */
  supports(boundary: Boundary): boolean;
  /** Whether there is one of this name, which a sandbox can begin with. @throws SandboxFailed; the signal's reason */
  has(name: string, signal: AbortSignal): Promise<boolean>;
}

/**
 * How a sandbox has to do with a layer.
 * - `begin`: workspace and home begin with the layer's files. `open` rejects where it is gone.
 * - `make`: both are empty, and `Sandbox.keepAsLayer` makes them the layer.
 */
export interface LayerUse {
  readonly use: "begin" | "make";
  /**
   * Names the content: `[0-9a-f]{64}`. Its first 16 characters are those of all layers of one project: where there are too many, no
   * project's layers may take the room of the others'.
   */
  readonly name: string;
}
