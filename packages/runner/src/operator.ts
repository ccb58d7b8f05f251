import type { Issue, OutputsReceipt, RunRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";

/** Calls that no request can allow: `true` denies every call, a list those that match one of its patterns. */
export type PermissionCeiling = true | readonly string[];

/** Keeps secrets out of the log until the returned function is called. */
export type HideSecrets = (secrets: readonly string[]) => () => void;

/** What takes files out of workspaces: `Workspaces` of `@ambit/workspace`. */
export interface WorkspaceService {
  /** Why such a request can't run here, by path. Pure. */
  issues(request: RunRequest): readonly Issue[];
  /** Undefined for a request without outputs. @param owner the run's key, under which its files are kept */
  outputsOf(owner: string, request: RunRequest): OutputsOfRun | undefined;
}

/** What leaves the workspace of one run. */
export interface OutputsOfRun {
  /** Once Ambit has filled the workspace. @throws OutputsFailed; the signal's reason */
  started(sandbox: Sandbox, signal: AbortSignal): Promise<void>;
  /** Takes the files out and keeps them. @throws OutputsFailed; the signal's reason */
  collect(sandbox: Sandbox, signal: AbortSignal): Promise<OutputsReceipt>;
  close(): Promise<void>;
}

/** A runner without one keeps no files. */
export const noWorkspaces: WorkspaceService = {
  issues: ({ outputs }) =>
    outputs === undefined
      ? []
      : [{ path: "outputs", message: "can't be kept here: send the request to a server (`ambit serve`)" }],
  outputsOf: () => undefined,
};
