import type { OwnSandbox } from "@ambit/core";
import type { GitSource, Issue, RunRequest, SourceReceipt } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { Blobs } from "./blobs/blobs.js";
import { fixOf } from "./git/failure.js";
import { pushChanges } from "./git/push.js";
import { gitSandbox, whyNotReached } from "./git/sandbox-of.js";
import { RunOutputs } from "./outputs/run-outputs.js";
import { preparing } from "./preparing.js";
import type { WorkspaceSettings } from "./settings.js";
import { fillFrom } from "./sources/fill.js";
import { sourceFailed } from "./sources/source-error.js";

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
  issues({ outputs, workspace }: Pick<RunRequest, "outputs" | "workspace">): readonly Issue[] {
    const { blobs, settings } = this.#options;
    const issues = (workspace?.sources ?? []).flatMap((source, index): Issue[] => {
      const message = source.type === "git" ? whyNotReached(source, settings.allowedRanges) : undefined;
      return message === undefined ? [] : [{ path: `workspace.sources[${index}].url`, message }];
    });
    if (outputs?.git !== undefined && repositoryOf({ workspace }) === undefined) {
      const message = "needs exactly one git source in workspace.sources, whose repository it is pushed to";
      issues.push({ path: "outputs.git", message });
    }
    if (outputs === undefined || blobs !== undefined) return issues;
    const message =
      "can't be kept: no plugin for files is loaded. Add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins";
    return [...issues, { path: "outputs", message }];
  }

  /** The sandboxes that such a request needs besides its agent's, by the index of the source, or for its outputs. Pure. */
  ownSandboxes(
    request: Pick<RunRequest, "workspace" | "outputs" | "sandboxPermission">,
  ): ReadonlyMap<number | "outputs.git", OwnSandbox> {
    const { allowedRanges } = this.#options.settings;
    const entries = (request.workspace?.sources ?? []).flatMap((source, index): [number, OwnSandbox][] => {
      if (source.type !== "git") return [];
      const { lfs } = source;
      const hosts = typeof lfs === "object" ? lfs.hosts : [];
      const services = lfs === false ? (["fetch"] as const) : (["fetch", "lfs"] as const);
      const subject = `workspace.sources[${index}]`;
      const asked = { subject, repository: source, services, hosts, request, allowedRanges };
      return [[index, gitSandbox(asked)]];
    });
    const own = new Map<number | "outputs.git", OwnSandbox>(entries);
    const output = request.outputs?.git;
    const repository = repositoryOf(request);
    if (output === undefined || repository === undefined) return own;
    const subject = "outputs.git";
    const pushed = { url: repository.url, credential: output.credential };
    const services = ["fetch", "push"] as const;
    return own.set(subject, gitSandbox({ subject, repository: pushed, services, request, allowedRanges }));
  }

  /**
   * Puts the request's sources into its new workspace.
   * @param open opens one of `ownSandboxes`
   * @throws SourceFailed; SandboxFailed where the sandbox can't write; the signal's reason
   */
  async fill(
    request: Pick<RunRequest, "workspace" | "outputs" | "sandboxPermission">,
    sandbox: Sandbox,
    open: (own: OwnSandbox) => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<readonly SourceReceipt[]> {
    const { settings, folder } = this.#options;
    const { maxSourceFiles: maxFiles, maxSourceMiB, maxEntries, sourcesTimeoutMs } = settings;
    const late = AbortSignal.timeout(sourcesTimeoutMs);
    const own = this.ownSandboxes(request);
    let at = 0;
    const prepare = preparing({
      folder,
      maxEntries,
      signal: AbortSignal.any([signal, late]),
      open: async (index) => {
        at = index;
        const needed = own.get(index);
        if (needed === undefined) throw new TypeError(`source ${index} needs no sandbox of its own`);
        return open(needed);
      },
    });
    try {
      const limits = { maxFiles, maxBytes: maxSourceMiB * 1_048_576 };
      return await fillFrom(request.workspace?.sources ?? [], sandbox, limits, signal, prepare);
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      throw sourceFailed(at, "timed_out", fixOf("timed_out"), error);
    }
  }

  /** Undefined for a run without outputs. @param owner the run's key */
  outputsOf(
    owner: string,
    { outputs, workspace }: Pick<RunRequest, "outputs" | "workspace">,
  ): RunOutputs | undefined {
    const { blobs, settings, folder } = this.#options;
    if (outputs === undefined || blobs === undefined) return undefined;
    const repository = repositoryOf({ workspace });
    return new RunOutputs({
      owner,
      outputs,
      settings,
      folder,
      blobs,
      repository: repository && { ...repository, push: pushChanges },
    });
  }
}

/** The request's one git source. */
function repositoryOf({ workspace }: Pick<RunRequest, "workspace">): GitSource | undefined {
  const [first, second] = (workspace?.sources ?? []).filter((source) => source.type === "git");
  return second === undefined ? first : undefined;
}
