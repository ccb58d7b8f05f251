import type { Issue, RunRequest } from "@ambit/core/contract";
import type { Blobs } from "./blobs/blobs.js";
import { RunOutputs } from "./outputs/run-outputs.js";
import type { WorkspaceSettings } from "./settings.js";

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

  /** Undefined for a run without outputs. @param owner the run's key */
  outputsOf(owner: string, { outputs }: Pick<RunRequest, "outputs">): RunOutputs | undefined {
    const { blobs, settings, folder } = this.#options;
    if (outputs === undefined || blobs === undefined) return undefined;
    return new RunOutputs({ owner, outputs, settings, folder, blobs });
  }
}
