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

/** `true` if the credential stays outside the sandbox, or the reason and fix of a gap. */
export type Hiding = true | Pick<ActorGap, "reason" | "fix">;

/** `true` if programs in the sandbox can read all paths, or the reason and fix of a gap. */
export type Readability = true | Pick<ActorGap, "reason" | "fix">;

/** A new value of a credential, or the reason why there is none, which programs in the sandbox may read. */
export type RefreshedSecret =
  | {
      readonly ok: true;
      readonly value: string;
      /** Milliseconds since 1970. */
      readonly expiresAt: number;
      /**
       * All values that the session still knows, including this one, by the name of their credential. Responses of the
       * credential's hosts must contain none of them, nor its initial value.
       */
      readonly known: Readonly<Record<string, readonly string[]>>;
    }
  | { readonly ok: false; readonly reason: string };

/** A request handler by the Fetch standard. */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

/** One decision about one connection that reached the boundary's proxy. */
export interface ConnectionDecision {
  /** `host:port`, as the client sent it. */
  readonly target: string;
  readonly allowed: boolean;
  /** The reason, which names the rule. */
  readonly reason: string;
  /** Why an allowed connection failed, such as a name that doesn't resolve. Absent: no failure is known. */
  readonly failure?: string | undefined;
  /** Set with `failure` if the connection was reported when it was opened, so that it isn't counted again. */
  readonly isReported?: true | undefined;
  /** Set for a refusal that a caller or deployer could lift. The run's result contains it, as a warning or as the failure. */
  readonly gap?: ActorGap;
}

/**
 * A file or folder of the host that programs in the sandbox need. It is read-only at the same path; a sandbox with an image
 * has a copy or a mount of it below `ImageRootfs.copyRoot`.
 */
export interface RequiredPath {
  /** An absolute path on the runner's host. */
  readonly path: string;
  /** Names the program in errors: "Gemini CLI". */
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
  /** The credentials to hide, which the backend's `hides` accepted. Default: none. */
  readonly secrets?: readonly HiddenCredential[];
  /**
   * Asks the platform for a new value of one of `secrets` that has `refresh`. When it resolves, the value is already redacted
   * in the run's output. The backend calls it before its value expires, once for all requests that wait, and never sends an
   * expired value. Never rejects. Absent: no secret has `refresh`.
   */
  refreshSecret?(name: string): Promise<RefreshedSecret>;
  /**
   * Set if another runner may take the sandbox over later. The fence increases with each owner, and the sandbox obeys only
   * the owner with the highest. Default: the sandbox ends with this runner.
   */
  readonly fence?: number;
  /**
   * The `Sandbox.remains` of a runner that ended without closing its sandbox: this sandbox gets that workspace and home. The
   * backend ends processes that still run there. `open` rejects if the files are gone, or if that runner is alive. Default:
   * workspace and home are empty.
   */
  readonly remains?: string | undefined;
  /** The deployer's proxy, through which the boundary's own proxy connects. Default: it connects directly. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /**
   * The real path of a folder on the runner's host, which is the workspace itself and stays when the sandbox is closed.
   * The sandbox's processes can't write to git's files in it. Set only if the backend has `opensFolders`. Default: a new
   * folder.
   */
  readonly workspaceFolder?: string | undefined;
  /** Set only if the backend's `layers` support the boundary. Default: workspace and home are empty. */
  readonly layer?: LayerUse;
  /** Called for every connection that reaches the boundary's proxy, including repeats. */
  onDecision(decision: ConnectionDecision): void;
  /**
   * Called when the sandbox can no longer enforce or record its boundary, such as when its proxy fails. The sandbox's run
   * then fails with this error, and no other run gets the sandbox. From the failure on, the backend must let nothing through.
   */
  onFailure?(failure: SandboxFailed): void;
  /** Whether no run has the sandbox yet, so that its proxy refuses every connection. Default: a run has it. */
  isUnclaimed?(): boolean;
  readonly log: Log;
}

/** Properties of a sandbox with an image. */
export interface ImageRootfs {
  /** The image's name in the configuration or request, such as `node:22`. Absent: the image has no name. */
  readonly name?: string;
  /** The image's `PATH`, in which programs are looked up by name. */
  readonly searchPath: string;
  /** An absolute path. Below it are copies or mounts of `SandboxSpec.requiredPaths`, each at its path on the runner. */
  readonly copyRoot: string;
  /** Whether the required paths are mounts: the backend's `rootfs` is `image-with-mounts`. */
  readonly mounted: boolean;
}

/**
 * A TCP connection from this host to the runner. Only both addresses and both ports identify it: a caller chooses its own
 * address and port, and several connections can have the same two ports.
 */
export interface LocalConnection {
  /** The runner's address in Node's form: IPv4, IPv6, or IPv4-mapped. */
  readonly localAddress: string;
  readonly localPort: number;
  /** The caller's address. */
  readonly remoteAddress: string;
  readonly remotePort: number;
}

export interface SandboxBackend extends Actor {
  /** Where the files of its sandboxes come from. Default: `host`. */
  readonly rootfs?: Rootfs;
  /**
   * The image of its sandboxes by its name in the configuration: `node:22`. A request may ask for it by `environment.image`.
   * Absent: they have no image with a name.
   */
  readonly image?: string | undefined;
  /** Whether a folder of the runner's host can be a workspace. Default: no. */
  readonly opensFolders?: true;
  /**
   * Whether `open` accepts the credential under this boundary. Programs inside then see a placeholder, which the backend
   * replaces on the way to one of the credential's hosts, and only where its other fields allow. Absent: it accepts none. Pure.
   */
  hides?(credential: HiddenCredential, boundary: Boundary): Hiding;
  /**
   * Whether file permissions let the programs in its sandboxes read these paths of this host. Absent: they do.
   * Synchronous and cheap.
   */
  reads?(paths: readonly RequiredPath[]): Readability;
  /**
   * Whether a process of one of its sandboxes made this connection, by the kernel's account; true if that can't be
   * determined. Such callers may neither start nor end runs. Absent: processes in its sandboxes can't reach this host.
   */
  madeConnection?(connection: LocalConnection): Promise<boolean>;
  /** Opens a sandbox that applies every limit, or rejects (`SandboxFailed`). Never opens a weaker one, or uses the host. */
  open(spec: SandboxSpec, scope: Scope): Promise<Sandbox>;
  /** Takes over remote sandboxes that outlive their runner. Absent: sandboxes end with their runner. */
  readonly takeover?: SandboxTakeover;
  /**
   * Removes the files that `Sandbox.remains` names, which no runner uses. Succeeds if they don't exist. Present if sandboxes
   * have `remains`.
   */
  discardRemains?(remains: string): Promise<void>;
  /** Keeps prepared files on the backend's platform. Absent: each sandbox gets a copy of them. */
  readonly layers?: SandboxLayers;
  /** Closes what the backend holds besides sessions, after the last session. The runner stops waiting when `signal` aborts. */
  close?(signal: AbortSignal): Promise<void>;
}

export interface SandboxTakeover {
  /**
   * Takes over a sandbox that another runner opened under the same id, boundary and requirements, and with a lower fence than
   * `spec.fence`. The boundary is proven again, as in `open`. Processes that the earlier runner started inside are ended,
   * files stay, and that runner can no longer reach the sandbox, even if it is alive.
   *
   * @param handover the `Sandbox.handover` of that runner.
   * @throws SandboxFailed if the sandbox is gone, doesn't match the spec, or has an owner with a higher fence.
   */
  takeOver(spec: SandboxSpec, handover: string, scope: Scope): Promise<Sandbox>;
  /** Removes a sandbox that no runner uses, unless its owner has a higher fence. Succeeds if it doesn't exist. */
  discard(spec: Pick<SandboxSpec, "id" | "fence" | "log">, handover: string): Promise<void>;
}

/** How often the limits of `resources` took effect. */
export interface LimitHits {
  /** Processes or threads that couldn't be started. */
  readonly processes: number;
  /** Processes that were killed because all together exceeded the memory limit. */
  readonly memory: number;
}

/** The contents of a sandbox, observed from outside it. */
export interface SandboxContents {
  /** The inside paths of files below `workspace` and `home`; the first thousand. */
  readonly files: readonly string[];
  /** The number of its live processes, without the backend's own. */
  readonly processes: number;
}

export interface Sandbox {
  /** The workspace's absolute path inside. It exists after `open`, and is empty unless it begins with a layer. */
  readonly workspace: string;
  /** The absolute path of the agent's home inside. The home outlives the run and ends with the session. */
  readonly home: string;
  readonly confinement: "confined" | "unconfined";
  /** Set exactly when the backend's `rootfs` isn't `host`. */
  readonly image?: ImageRootfs;
  /** The placeholder of each of the spec's `secrets`, by name. */
  readonly placeholders?: Readonly<Record<string, string>>;
  /** What was observed when this sandbox opened, and of its first process before that process's first instruction. */
  readonly evidence: Evidence;
  /** How often its processes have reached the limits so far. Synchronous and cheap. Absent: the backend can't count that. */
  limitHits?(): LimitHits;
  /** Lists what is inside. Present only if the backend obeys `SandboxSpec.isUnclaimed`. Absent: no agent starts ahead in it. */
  contents?(): Promise<SandboxContents>;
  /** Starts a process, which is isolated from the others as far as `environment.per-tool` promises. */
  spawn(command: Command): Promise<Process>;
  /** Writes without following links that lead out of `workspace` and `home`. */
  writeFiles(files: readonly FileEntry[]): Promise<void>;
  /** @throws SandboxFailed if the file doesn't exist or can't be read. */
  readFile(path: string): Promise<Uint8Array>;
  /** Makes a handler reachable from inside only. The backend checks the token on every request: see `presentsToken`. */
  expose(handler: FetchHandler): Promise<Exposure>;
  /**
   * Connects to a port of `boundary.inbound` on the loopback inside. A program of the sandbox answers, so don't trust the
   * response. Present if `inbound.ports` is required.
   * @throws SandboxFailed for any other port, and if no program inside listens
   */
  connect?(port: number): Promise<Duplex>;
  /** The data that `takeOver` needs. It holds keys: store it encrypted. Absent: this sandbox can't be taken over. */
  readonly handover?: string;
  /** Call it instead of `close` to leave the files to the next owner. Present if `handover` is. */
  leave?(): Promise<void>;
  /**
   * Call it instead of `close` to end the sandbox and keep its workspace and home as the layer. If a layer of this name exists
   * by then, that one stays. Present if `SandboxSpec.layer` has `use: "make"`.
   * @throws SandboxFailed; no layer is kept then
   */
  keepAsLayer?(): Promise<void>;
  /**
   * Identifies the sandbox's files for `SandboxSpec.remains` if they outlive this runner's sudden end, so that the next runner
   * on the same host can continue with them. Present only if `SandboxSpec.fence` was. Absent: the files end with this runner.
   */
  readonly remains?: string;
  /** Removes every process, folder, socket, group and route, except what another runner took over. Safe to call twice. */
  close(): Promise<void>;
}

export interface Exposure {
  /** The URL inside, without a path: `http://127.0.0.1:41234`. Two exposures may share it, and differ by token. */
  readonly url: string;
  /** Programs send it as `Authorization: Bearer …`, or as an API key: `x-api-key`, `x-goog-api-key`. */
  readonly token: string;
  close(): Promise<void>;
}

export interface Command {
  /** The program and its arguments, never a shell line. The program is a path, or a name that is looked up in `env.PATH`. */
  readonly argv: readonly [program: string, ...args: string[]];
  /** All variables: none is inherited. The backend adds only those that confinement needs (proxy variables, HOME, TMPDIR). */
  readonly env: Readonly<Record<string, string>>;
  /** An absolute path inside. Default: the workspace. */
  readonly cwd?: string;
  /** `agent` uses the session's home. `tool` has its own home and scratch, which are removed with it. Default: `tool`. */
  readonly role?: "agent" | "tool";
  /** Kills the process, and all processes that it started, when it aborts. */
  readonly signal?: AbortSignal;
}

export interface Process {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** What was observed of this process before its first instruction. */
  readonly evidence: Evidence;
  /** Settles when the process, and all processes that it started, have ended. Never rejects. */
  readonly exit: Promise<Exit>;
  /** Ends the process and all processes that it started. Default: `SIGKILL`. Safe after the exit. */
  kill(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface FileEntry {
  /** An absolute path in `workspace` or `home`. Missing folders are created. */
  readonly path: string;
  readonly content: string | Uint8Array;
  /** Default: false. */
  readonly executable?: boolean;
}

/**
 * Prepared files that the platform keeps, and that new sandboxes begin with, without a copy for each. A layer is the
 * workspace and the home of one sandbox. It never changes: a sandbox's writes are invisible to the others.
 */
export interface SandboxLayers {
  /**
   * Identifies the programs that new sandboxes have installed, such as by an image's id: the text is the same only for the
   * same programs. Undefined: the backend doesn't know before a sandbox is open.
   * @throws SandboxFailed; the signal's reason
   */
  system(signal: AbortSignal): Promise<string | undefined>;
  /** Whether sandboxes with this boundary can begin with a layer and become one. Synchronous. */
  supports(boundary: Boundary): boolean;
  /** Whether a layer of this name exists, so that a sandbox can begin with it. @throws SandboxFailed; the signal's reason */
  has(name: string, signal: AbortSignal): Promise<boolean>;
}

/**
 * How a sandbox uses a layer.
 * - `begin`: workspace and home begin with the layer's files. `open` rejects if the layer is gone.
 * - `make`: both are empty, and `Sandbox.keepAsLayer` makes them the layer.
 */
export interface LayerUse {
  readonly use: "begin" | "make";
  /**
   * Identifies the content: `[0-9a-f]{64}`. All layers of a project have the same first 16 characters, by which a backend that
   * removes layers keeps one project from taking the others' room.
   */
  readonly name: string;
}
