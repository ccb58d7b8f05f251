import type { Duplex } from "node:stream";
import type { OwnSandbox } from "@ambit/core";
import type {
  EnvironmentReceipt,
  GitReceipt,
  Issue,
  OutputsReceipt,
  RunRequest,
  SnapshotInfo,
  SourceReceipt,
  Warning,
} from "@ambit/core/contract";
import type { Boundary, Log, Sandbox, SandboxBackend } from "@ambit/core/plugin";

/** Calls that no request can allow: `true` denies every call, a list those that match one of its patterns. */
export type PermissionCeiling = true | readonly string[];

/** Keeps secrets out of the log until the returned function is called. */
export type HideSecrets = (secrets: readonly string[]) => () => void;

/** What puts files into workspaces and takes them out: `Workspaces` of `@ambit/workspace`. */
export interface WorkspaceService {
  /** Undefined where sessions can't be copied. */
  readonly snapshots: SnapshotService | undefined;
  /** Keeps the files of idle sessions beyond this process. Undefined where none are kept. */
  readonly suspended: Pick<SnapshotService, "isKept" | "take" | "restore" | "delete"> | undefined;
  /** Why such a request can't run here, by path. Pure. */
  issues(request: RunRequest): readonly Issue[];
  /** The sandboxes that such a request needs besides its agent's: the plan covers them too. Pure. */
  ownSandboxes(request: RunRequest): ReadonlyMap<unknown, OwnSandbox>;
  /**
   * What the new sandbox of a request can begin with, so that `fill` has nothing to put into it. Undefined: it begins empty.
   * @throws the signal's reason
   */
  begin(request: RunRequest, options: BeginOptions): Promise<Beginning | undefined>;
  /**
   * Puts the sources of a request into its new workspace, and what its setup commands make of them.
   * @throws SourceFailed, SetupFailed, SnapshotFailed, SandboxFailed; the signal's reason
   */
  fill(request: RunRequest, sandbox: Sandbox, options: FillOptions): Promise<FilledWorkspace>;
  /**
   * Removes the locks that killed commands of git left in a workspace.
   * @returns their paths. @throws SandboxFailed; the signal's reason
   */
  removeGitLocks(sandbox: Sandbox, signal: AbortSignal): Promise<readonly string[]>;
  /** Undefined for a request without outputs. @param owner the run's key, under which its files are kept */
  outputsOf(owner: string, request: RunRequest): OutputsOfRun | undefined;
}

/** What a new sandbox can begin with. */
export interface Beginning {
  /** The layer's name. */
  readonly layer: string;
  /** What the layer has. */
  readonly filled: FilledWorkspace;
}

export interface BeginOptions {
  /** Opens one of `ownSandboxes`; it is closed when nothing needs it any more, at the latest with the run. */
  readonly open: (own: OwnSandbox) => Promise<Sandbox>;
  /** The same, for files that become the layer of this name. */
  readonly openLayer: (own: OwnSandbox, name: string) => Promise<Sandbox>;
  /** The run's. */
  readonly backend: Pick<SandboxBackend, "name" | "layers">;
  /** The agent's. */
  readonly boundary: Boundary;
  /** Whether what the run prepares may be kept for others of its project. */
  readonly mayKeep: boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface FillOptions extends BeginOptions {
  /** What the sandbox began with. Undefined for an empty one. */
  readonly begun: FilledWorkspace | undefined;
  /** Gets what the setup commands do: the data of an event. */
  readonly report: (report: object) => void;
  /** Gets how many percent of the source of this index have arrived, as often as it learns it. */
  readonly received: (source: number, percent: number) => void;
  /** Gets what the caller should know of what was left out. */
  readonly warn: (warning: Warning) => void;
}

/** What a new workspace was filled with; undefined for what the request doesn't have. */
export interface FilledWorkspace {
  readonly sources: readonly SourceReceipt[] | undefined;
  readonly environment: EnvironmentReceipt | undefined;
}

/** Makes URLs of ports inside sandboxes: `Previews` of the server. */
export interface PreviewService {
  /** Why such a request can't run here, by path. Pure. */
  issues(request: RunRequest): readonly Issue[];
  /** @throws AtCapacity */
  open(port: PortOfSession): Preview;
}

export interface PortOfSession {
  readonly port: number;
  readonly project: string | undefined;
  /** A connection to it. @throws SandboxFailed */
  connect(): Promise<Duplex>;
}

export interface Preview {
  /** A new URL. Everyone who has it gets in until it expires, so it is never logged. The origin is always the same. */
  link(): Promise<{ readonly url: string; readonly expiresAt: string }>;
  /** Its URLs lead nowhere from now on, and its connections end. Safe to call twice. */
  readonly close: () => void;
}

/** A runner without one lets nothing in. */
export const noPreviews: PreviewService = {
  issues: ({ ports = [] }) =>
    ports.length === 0
      ? []
      : [
          {
            path: "ports",
            message:
              "can't be reached here: set server.preview.port in the configuration of a server (`ambit serve`), or leave them out",
          },
        ],
  open: () => {
    throw new Error("This runner has no previews.");
  },
};

/** Calls back to platforms for new values of credentials: the server's. */
export interface CredentialRefreshService {
  /** Why such a callback is refused; undefined if it isn't, or if only its name is known so far. Pure. */
  whyRefused(url: URL): string | undefined;
  /**
   * Posts once, to an address that was checked, and reads a bounded response.
   * @throws RefreshFailed; the signal's reason
   */
  ask(
    request: {
      readonly url: URL;
      readonly authorization: string | undefined;
      /** JSON. */
      readonly body: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly body: string }>;
}

/** A runner without one refuses such requests. */
export const noCredentialRefresh: CredentialRefreshService = {
  whyRefused: () => "this runner makes no callbacks for credentials",
  ask: () => Promise.reject(new Error("This runner makes no callbacks for credentials.")),
};

/** What leaves the workspace of one run. */
export interface OutputsOfRun {
  /** Once Ambit has filled the workspace. @throws OutputsFailed; the signal's reason */
  started(sandbox: Sandbox, signal: AbortSignal): Promise<void>;
  /** Takes the files out and keeps them. @throws OutputsFailed; the signal's reason */
  collect(sandbox: Sandbox, signal: AbortSignal): Promise<OutputsReceipt>;
  /**
   * Makes a commit of what changed, after `collect`, and pushes it to the repository that the workspace began with where that is
   * asked for. Undefined where nothing changed.
   * @param from the commit that the workspace was at, and whether an earlier run of the session began with it or pushed it;
   * undefined where that isn't known
   * @throws OutputsFailed, SandboxFailed; the signal's reason
   */
  push(
    from: { readonly commit: string; readonly isEarlier: boolean } | undefined,
    open: () => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<GitReceipt | undefined>;
  /** Opens the pull request of what was pushed. Undefined where none is asked for. @throws OutputsFailed; the signal's reason */
  openPullRequest(pushed: GitReceipt, signal: AbortSignal): Promise<GitReceipt["pullRequest"]>;
  close(): Promise<void>;
}

/** A runner without one keeps no files, and has no sources. */
export const noWorkspaces: WorkspaceService = {
  snapshots: undefined,
  suspended: undefined,
  issues: (request) =>
    (["outputs", "workspace", "environment", "fork"] as const)
      .filter((path) => request[path] !== undefined)
      .map((path) => ({
        path,
        message: "isn't supported here: send the request to a server (`ambit serve`)",
      })),
  ownSandboxes: () => new Map(),
  begin: async () => undefined,
  fill: async () => ({ sources: undefined, environment: undefined }),
  removeGitLocks: async () => [],
  outputsOf: () => undefined,
};

/** A session's sandbox, with the name of its backend: its files can only go into one of the same. */
export interface SandboxOfSession {
  readonly sandbox: Sandbox;
  readonly backend: string;
}

/** What a session is besides its files. It holds credentials: stored encrypted. */
export interface SessionState {
  /** The one that its agent stored in its home. */
  readonly conversation: { readonly harness: string; readonly id: string } | undefined;
  /** Digests of the user's messages in it. */
  readonly userMessages: readonly string[];
  /** What the output of its sandbox is redacted of. */
  readonly secrets: readonly string[];
}

/** The archive of a session's files, as it was written. */
export type ArchiveFacts = Pick<SnapshotInfo, "sha256" | "bytes" | "entries" | "skipped">;

/** Which of a session's files are copied. */
export type CopiedPart = "all" | "workspace" | "home";

/** Copies sessions' workspaces and homes, and keeps them: `Snapshots` of `@ambit/workspace`. */
export interface SnapshotService {
  /** Whether there is a place to keep them. */
  readonly isKept: boolean;
  /** @throws SnapshotFailed, StoreFailed; the signal's reason */
  take(
    of: SandboxOfSession & { readonly session: string; readonly project: string | undefined },
    state: SessionState,
    signal: AbortSignal,
  ): Promise<SnapshotInfo>;
  /**
   * Puts a snapshot of the project into a new sandbox. If this fails, part of it may be there: close it.
   * @param of Default: workspace and home. A home fits only into a sandbox of the same backend.
   * @throws NotFound, SnapshotFailed, StoreFailed; the signal's reason
   */
  restore(
    id: string,
    project: string | undefined,
    into: SandboxOfSession,
    signal: AbortSignal,
    of?: CopiedPart,
  ): Promise<{ readonly facts: ArchiveFacts; readonly state: SessionState }>;
  /** Copies the files of one session into another without keeping them. @param of as for `restore`. @throws SnapshotFailed; the signal's reason */
  copy(
    from: SandboxOfSession,
    into: SandboxOfSession,
    signal: AbortSignal,
    of?: CopiedPart,
  ): Promise<ArchiveFacts>;
  /** @throws NotFound, StoreFailed */
  delete(id: string, project: string | undefined): Promise<void>;
}
