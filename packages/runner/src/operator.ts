import type { OwnSandbox } from "@ambit/core";
import type { Issue, OutputsReceipt, RunRequest, SourceReceipt } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";

/** Calls that no request can allow: `true` denies every call, a list those that match one of its patterns. */
export type PermissionCeiling = true | readonly string[];

/** Keeps secrets out of the log until the returned function is called. */
export type HideSecrets = (secrets: readonly string[]) => () => void;

/** What puts files into workspaces and takes them out: `Workspaces` of `@ambit/workspace`. */
export interface WorkspaceService {
  /** Why such a request can't run here, by path. Pure. */
  issues(request: RunRequest): readonly Issue[];
  /** The sandboxes that such a request needs besides its agent's: the plan covers them too. Pure. */
  ownSandboxes(request: RunRequest): ReadonlyMap<unknown, OwnSandbox>;
  /**
   * Puts the sources of a request into its new workspace.
   * @param open opens one of `ownSandboxes`, which the caller closes
   * @throws SourceFailed, SandboxFailed; the signal's reason
   */
  fill(
    request: RunRequest,
    sandbox: Sandbox,
    open: (own: OwnSandbox) => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<readonly SourceReceipt[]>;
  /** Undefined for a request without outputs. @param owner the run's key, under which its files are kept */
  outputsOf(owner: string, request: RunRequest): OutputsOfRun | undefined;
}

/** What leaves the workspace of one run. */
export interface OutputsOfRun {
  /** Once Ambit has filled the workspace. @throws OutputsFailed; the signal's reason */
  started(sandbox: Sandbox, signal: AbortSignal): Promise<void>;
  /** Takes the files out and keeps them. @throws OutputsFailed; the signal's reason */
  collect(sandbox: Sandbox, signal: AbortSignal): Promise<OutputsReceipt>;
  /**
   * Pushes what changed to the repository that the workspace began with, after `collect`. Undefined where nothing changed.
   * @param sources what this run put into the workspace
   * @throws OutputsFailed, SandboxFailed; the signal's reason
   */
  push(
    sources: readonly SourceReceipt[] | undefined,
    open: () => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<OutputsReceipt["git"]>;
  close(): Promise<void>;
}

/** A runner without one keeps no files, and has no sources. */
export const noWorkspaces: WorkspaceService = {
  issues: (request) =>
    (["outputs", "workspace"] as const)
      .filter((path) => request[path] !== undefined)
      .map((path) => ({
        path,
        message: "isn't supported here: send the request to a server (`ambit serve`)",
      })),
  ownSandboxes: () => new Map(),
  fill: async () => [],
  outputsOf: () => undefined,
};
