import type { Issue, RunRequest, SourceReceipt } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { Blobs } from "./blobs/blobs.js";
import { RunOutputs } from "./outputs/run-outputs.js";
import type { WorkspaceSettings } from "./settings.js";
import { fillFrom } from "./sources/fill.js";

export interface WorkspacesOptions {
  readonly settings: WorkspaceSettings;
  /** For files on their way. */
  readonly folder: string;
  /** Undefined where no plugin keeps files. */
  readonly blobs: (() => Promise<Blobs>) | undefined;
}

/** What a runner does with workspaces beyond the request's own files. */
export class Workspaces {
  readonly #options: WorkspacesOptions;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
  }

  /** Why such a request can't run here. Pure. */
  issues({ outputs }: Pick<RunRequest, "outputs">): readonly Issue[] {
    if (outputs === undefined || this.#options.blobs !== undefined) return [];
    const message =
      "can't be kept: no plugin for files is loaded. Add @ambit/blobs-folder to the configuration's plugins";
    return [{ path: "outputs", message }];
  }

  /**
   * Puts the request's sources into its new workspace.
   * @throws SourceFailed; SandboxFailed where the sandbox can't write; the signal's reason
   */
  fill(
    { workspace }: Pick<RunRequest, "workspace">,
    sandbox: Sandbox,
    signal: AbortSignal,
  ): Promise<readonly SourceReceipt[]> {
    const { maxSourceFiles: maxFiles, maxSourceMiB } = this.#options.settings;
    const limits = { maxFiles, maxBytes: maxSourceMiB * 1_048_576 };
    return fillFrom(workspace?.sources ?? [], sandbox, limits, signal);
  }

  /** Undefined for a run without outputs. @param owner the run's key */
  outputsOf(owner: string, { outputs }: Pick<RunRequest, "outputs">): RunOutputs | undefined {
    const { blobs, settings, folder } = this.#options;
    if (outputs === undefined || blobs === undefined) return undefined;
    return new RunOutputs({ owner, outputs, settings, folder, blobs });
  }
}
