import type { OwnSandbox } from "@ambit/core";
import {
  type EnvironmentReceipt,
  type GitSource,
  hasSetup,
  type Issue,
  type RunRequest,
  type SourceReceipt,
  type Warning,
} from "@ambit/core/contract";
import type { Boundary, Log, Sandbox, SandboxBackend } from "@ambit/core/plugin";
import type { Blobs } from "./blobs.js";
import { type DownloadOptions, type OpenDownload, requireAccess } from "./download.js";
import type { ReportSetup } from "./environment/commands.js";
import { type BeginningRun, Environments, type Prepared } from "./environment/environments.js";
import { KeptSnapshots } from "./environment/kept.js";
import { environmentIssues, setupSandbox } from "./environment/sandbox-of.js";
import type { SendToApi } from "./forge/api.js";
import { whyNoPullRequest } from "./forge/pull-request.js";
import { headOf } from "./git/checkout.js";
import { fixOf } from "./git/failure.js";
import { removeGitLocks, setGitUser } from "./git/in-workspace.js";
import { gitSandbox, type OperatorReach, whyNotReached } from "./git/sandbox-of.js";
import type { Sign } from "./git/signing.js";
import { RunOutputs } from "./outputs/run-outputs.js";
import { type PrepareOptions, preparing } from "./preparing.js";
import type { WorkspaceSettings } from "./settings.js";
import { unpackSnapshot } from "./snapshots/archive.js";
import type { Snapshots } from "./snapshots/snapshots.js";
import { fillFrom, type Prepare } from "./sources/fill.js";
import { archiveOfLocal, type LocalEntry } from "./sources/local.js";
import { sourceFailed } from "./sources/source.js";

/** What finds out what one run's sandbox may begin with. */
export interface BeginOptions {
  /** Opens one of `ownSandboxes`. */
  readonly open: (own: OwnSandbox) => Promise<Sandbox>;
  /** The run's backend. */
  readonly backend: Pick<SandboxBackend, "name" | "layers">;
  /** The agent's. */
  readonly boundary: Boundary;
  /** Opens a sandbox, as one of `ownSandboxes`, whose files become the layer of this name. */
  readonly openLayer: (own: OwnSandbox, name: string) => Promise<Sandbox>;
  /** Whether what the run prepares may be kept for others of its project. */
  readonly mayKeep: boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** What fills one run's workspace. */
export interface FillOptions extends BeginOptions {
  /** The files that its sandbox began with. Undefined for an empty one. */
  readonly begun: Filled | undefined;
  readonly report: ReportSetup;
  readonly received?: PrepareOptions["received"];
  readonly warn: (warning: Warning) => void;
}

/** What a sandbox can begin with. */
export interface Beginning {
  /** The layer's name. */
  readonly layer: string;
  readonly filled: Filled;
}

/** What a workspace was filled with. */
export interface Filled {
  readonly sources: readonly SourceReceipt[] | undefined;
  readonly environment: EnvironmentReceipt | undefined;
}

interface WorkspacesOptions {
  /** Copies of sessions. Undefined where none are made. */
  readonly snapshots: Snapshots | undefined;
  /** The files of sessions whose server stopped. Undefined where none are kept. */
  readonly suspended?: Snapshots | undefined;
  readonly settings: WorkspaceSettings;
  /** The folder for files on their way. */
  readonly folder: string;
  /** The folder for prepared environments, which stay. */
  readonly preparedFolder: string;
  /** Undefined where no plugin keeps files. */
  readonly blobs: (() => Promise<Blobs>) | undefined;
  /** The name of that place in errors. */
  readonly blobsTitle?: string | undefined;
  /** Why Ambit's own programs may not connect to an address that a request names; undefined if they may. */
  readonly whyForbidden: OperatorReach["whyForbidden"];
  /** Sends requests to the API of a repository's host. */
  readonly send: SendToApi;
  /** Downloads archives. */
  readonly openDownload: OpenDownload;
  /** What of this host comes into every new workspace after its sources. Default: nothing. */
  readonly local?: (() => readonly LocalEntry[]) | undefined;
  /** Undefined: commits aren't signed. */
  readonly sign?: Sign | undefined;
}

/** What a runner does with workspaces beyond the request's own files. */
export class Workspaces {
  readonly #options: WorkspacesOptions;
  readonly #environments: Environments;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
    const { maxEntries, maxSnapshotMiB, setupTimeoutMs, ...settings } = options.settings;
    const kept = new KeptSnapshots(options.preparedFolder, {
      maxSnapshots: settings.maxPrepared,
      maxBytes: settings.maxPreparedMiB * mebibyte,
      maxUnusedMs: settings.preparedUnusedMs,
      rebuildAfterMs: settings.rebuildAfterMs,
    });
    const limits = { maxEntries, maxBytes: maxSnapshotMiB * mebibyte };
    this.#environments = new Environments({ kept, limits, setupTimeoutMs });
  }

  get snapshots(): Snapshots | undefined {
    return this.#options.snapshots;
  }

  get suspended(): Snapshots | undefined {
    return this.#options.suspended;
  }

  /** Why such a request can't run here. */
  issues(request: Needed): readonly Issue[] {
    return requestIssues(request, { reach: this.#reach, hasBlobs: this.#options.blobs !== undefined });
  }

  get #reach(): OperatorReach {
    const { settings, whyForbidden } = this.#options;
    return { allowedRanges: settings.allowedRanges, whyForbidden };
  }

  /** The sandboxes that such a request needs besides its agent's, by the index of the source, or for its outputs. Pure. */
  ownSandboxes(request: Needed): ReadonlyMap<number | "outputs.git" | "environment", OwnSandbox> {
    const reach = this.#reach;
    const entries = (request.workspace?.sources ?? []).flatMap((source, index): [number, OwnSandbox][] => {
      if (source.type !== "git") return [];
      const { lfs } = source;
      const hosts = typeof lfs === "object" ? lfs.hosts : [];
      const services = lfs === false ? (["fetch"] as const) : (["fetch", "lfs"] as const);
      const subject = `workspace.sources[${index}]`;
      const gitOptions = { subject, repository: source, services, hosts, request, reach };
      return [[index, gitSandbox(gitOptions)]];
    });
    const sandboxes = new Map<number | "outputs.git" | "environment", OwnSandbox>(entries);
    const setup = setupSandbox(request);
    if (setup !== undefined) sandboxes.set("environment", setup);
    const output = request.outputs?.git;
    const repository = repositoryOf(request);
    if (output === undefined || repository === undefined) return sandboxes;
    const subject = "outputs.git";
    const isPushed = output.push === "branch";
    // What isn't pushed needs no right to push.
    const credential = output.credential ?? (isPushed ? undefined : repository.credential);
    const pushed = { url: repository.url, credential };
    const services = isPushed ? (["fetch", "push", "lfs"] as const) : (["fetch"] as const);
    const hosts = typeof repository.lfs === "object" && isPushed ? repository.lfs.hosts : [];
    const gitOptions = { subject, repository: pushed, services, hosts, request, reach };
    return sandboxes.set(subject, gitSandbox(gitOptions));
  }

  /**
   * What the request's new sandbox can begin with, so that `fill` has nothing to put into it. Undefined: it begins empty.
   * @throws the signal's reason
   */
  async begin(
    request: Needed & Pick<RunRequest, "projectId" | "runContext">,
    options: BeginOptions,
  ): Promise<Beginning | undefined> {
    const setup = this.ownSandboxes(request).get("environment");
    if (setup === undefined) return undefined;
    const begun = await this.#environments.begin(this.#beginning(request, setup, options));
    return begun && { layer: begun.layer, filled: filledWith(request, begun.prepared) };
  }

  /**
   * Puts the request's sources into its new workspace, and what its setup commands make of them.
   * @throws SourceFailed, SetupFailed, SnapshotFailed; SandboxFailed where the sandbox can't write; the signal's reason
   */
  async fill(
    request: Needed & Pick<RunRequest, "projectId" | "runContext">,
    sandbox: Sandbox,
    options: FillOptions,
  ): Promise<Filled> {
    const { signal } = options;
    const filled = await this.#prepare(request, sandbox, options);
    const local = this.#options.local?.() ?? [];
    if (local.length > 0) {
      const { maxEntries, maxSnapshotMiB } = this.#options.settings;
      const limits = { maxEntries, maxBytes: maxSnapshotMiB * mebibyte };
      await unpackSnapshot(sandbox, archiveOfLocal(local), undefined, limits, signal, "workspace");
    }
    const { gitUser } = request.workspace ?? {};
    if (gitUser !== undefined) await setGitUser(sandbox, gitUser, signal);
    return filled;
  }

  /** Removes the locks in a workspace in which no command of git runs. @returns their paths. @throws SandboxFailed; the signal's reason */
  removeGitLocks(sandbox: Sandbox, signal: AbortSignal): Promise<readonly string[]> {
    return removeGitLocks(sandbox, signal);
  }

  async #prepare(
    request: Needed & Pick<RunRequest, "projectId" | "runContext">,
    sandbox: Sandbox,
    options: FillOptions,
  ): Promise<Filled> {
    const { begun, report, warn } = options;
    const setup = this.ownSandboxes(request).get("environment");
    const fill = (into: Sandbox) => this.#fillSources(request, into, options);
    if (setup === undefined) {
      const sources = request.workspace === undefined ? undefined : await fill(sandbox);
      return { sources, environment: undefined };
    }
    const openSetup = () => options.open(setup);
    const run = { ...this.#beginning(request, setup, options), sandbox, openSetup, fill, report, warn };
    const filled = begun ?? filledWith(request, await this.#environments.prepare(run));
    const { inputs, prepareOnly } = request.environment ?? {};
    // What is kept has no files of the sources then.
    return inputs === undefined || prepareOnly ? filled : { ...filled, sources: await fill(sandbox) };
  }

  #beginning(
    request: Needed & Pick<RunRequest, "projectId" | "runContext">,
    own: OwnSandbox,
    { open, openLayer, backend, boundary, mayKeep, log, signal }: BeginOptions,
  ): BeginningRun {
    const { name, layers: kept } = backend;
    const hasLayers = kept?.supports(boundary) === true && kept.supports(own.boundary);
    const layers =
      kept === undefined || !hasLayers
        ? undefined
        : { kept, open: (layer: string) => openLayer(own, layer), log };
    const commits = () => this.#commits(request, open, signal);
    return { request, mayKeep, backend: name, layers, own, commits, signal };
  }

  async #fillSources(
    request: Needed,
    sandbox: Sandbox,
    { open, signal, received }: Pick<FillOptions, "open" | "signal" | "received">,
  ): Promise<readonly SourceReceipt[]> {
    const { settings, folder } = this.#options;
    const { maxSourceFiles: maxFiles, maxSourceMiB, maxEntries, sourcesTimeoutMs } = settings;
    const late = AbortSignal.timeout(sourcesTimeoutMs);
    const sandboxes = this.ownSandboxes(request);
    let at = 0;
    const prepare = preparing({
      downloads: this.#downloads,
      folder,
      maxEntries,
      received,
      signal: AbortSignal.any([signal, late]),
      open: async (index) => {
        const needed = sandboxes.get(index);
        if (needed === undefined) throw new TypeError(`source ${index} needs no sandbox of its own`);
        return open(needed);
      },
    });
    try {
      const limits = { maxFiles, maxBytes: maxSourceMiB * mebibyte };
      const noted: Prepare = (index, ...asked) => {
        at = index;
        return prepare(index, ...asked);
      };
      const later = request.harnessFiles.map(({ path }) => path);
      return await fillFrom(request.workspace?.sources ?? [], sandbox, limits, signal, noted, later);
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      throw sourceFailed(at, "timed_out", fixOf("timed_out"), error);
    }
  }

  get #downloads(): Pick<DownloadOptions, "open" | "whyNot"> {
    return { open: this.#options.openDownload, whyNot: (url) => whyNotReached({ url }, this.#reach) };
  }

  /**
   * The commits of git sources. It asks the hosts of archives too: what was prepared from one is for those who may download it.
   * Undefined where a branch or tag isn't there.
   * @throws SourceFailed, SandboxFailed; the signal's reason
   */
  async #commits(
    request: Needed,
    open: (own: OwnSandbox) => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, string> | undefined> {
    const { maxSourceMiB, sourcesTimeoutMs } = this.#options.settings;
    const late = AbortSignal.timeout(sourcesTimeoutMs);
    const sandboxes = this.ownSandboxes(request);
    const both = AbortSignal.any([signal, late]);
    const commits = new Map<number, string>();
    for (const [index, source] of (request.workspace?.sources ?? []).entries()) {
      try {
        if (source.type === "archive" && source.url !== undefined)
          await requireAccess({ ...source, url: source.url }, { ...this.#downloads, index, signal: both });
        const needed = sandboxes.get(index);
        if (source.type !== "git" || needed === undefined) continue;
        const sandbox = await open(needed);
        try {
          const isPlain = new URL(source.url).protocol === "http:";
          const git = { sandbox, signal: both, isPlain, maxFileBytes: maxSourceMiB * mebibyte };
          const commit = await headOf(index, source, git);
          if (commit === undefined) return undefined;
          commits.set(index, commit);
        } finally {
          await sandbox.close();
        }
      } catch (error) {
        signal.throwIfAborted();
        if (!late.aborted) throw error;
        throw sourceFailed(index, "timed_out", fixOf("timed_out"), error);
      }
    }
    return commits;
  }

  /** Undefined for a run without outputs. @param owner the run's key */
  outputsOf(
    owner: string,
    { outputs, workspace }: Pick<RunRequest, "outputs" | "workspace">,
  ): RunOutputs | undefined {
    const { blobs, blobsTitle, settings, folder, send, sign } = this.#options;
    if (outputs === undefined || blobs === undefined) return undefined;
    const repository = repositoryOf({ workspace });
    return new RunOutputs({
      owner,
      outputs,
      settings,
      folder,
      blobs,
      blobsTitle,
      repository: repository && { url: repository.url, into: repository.into, send, sign },
    });
  }
}

const mebibyte = 1_048_576;

function filledWith({ workspace }: Pick<RunRequest, "workspace">, prepared: Prepared): Filled {
  return { ...prepared, sources: workspace === undefined ? undefined : prepared.sources };
}

/** What workspaces need of a request. */
type Needed = Pick<
  RunRequest,
  "workspace" | "outputs" | "sandboxPermission" | "environment" | "fork" | "sessionId" | "harnessFiles"
>;

interface IssueOptions {
  readonly reach: OperatorReach;
  /** Whether a plugin keeps files. */
  readonly hasBlobs: boolean;
}

/** Why this server can't give a request its workspace, environment or outputs. */
function requestIssues(request: Needed, { reach, hasBlobs }: IssueOptions): readonly Issue[] {
  const { outputs, workspace } = request;
  const issues = [...environmentIssues(request)];
  const unreached = (workspace?.sources ?? []).flatMap((source, index): Issue[] => {
    if (source.type === "files" || source.url === undefined) return [];
    const { url, credential } = source;
    const message = whyNotReached({ url, credential }, reach);
    return message === undefined ? [] : [{ path: `workspace.sources[${index}].url`, message }];
  });
  issues.push(...unreached);
  issues.push(...forkIssues(request, hasBlobs));
  const repository = repositoryOf({ workspace });
  const wish = outputs?.git?.pullRequest;
  if (wish !== undefined && repository !== undefined) {
    const problem = whyNoPullRequest(repository.url, wish);
    if (problem !== undefined)
      issues.push({ path: `outputs.git.pullRequest.${problem.field}`, message: problem.message });
  }
  if (outputs?.git !== undefined && repository === undefined) {
    const message = "needs exactly one git source in workspace.sources, whose repository it is pushed to";
    issues.push({ path: "outputs.git", message });
  }
  if (outputs === undefined || hasBlobs) return issues;
  const message =
    "can't be kept: no plugin for files is loaded. Add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins";
  return [...issues, { path: "outputs", message }];
}

function forkIssues({ fork, workspace, environment, sessionId }: Needed, isKept: boolean): readonly Issue[] {
  if (fork === undefined) return [];
  const issues: Issue[] = [];
  if (workspace !== undefined || hasSetup(environment))
    issues.push({ path: "fork", message: "already has files: leave workspace and environment.setup out" });
  if (fork.session !== undefined && fork.session === sessionId)
    issues.push({ path: "fork.session", message: "is this request's own session: send another sessionId" });
  if (fork.snapshot !== undefined && !isKept) {
    const message =
      "can't be kept here: add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins";
    issues.push({ path: "fork.snapshot", message });
  }
  return issues;
}

/** The request's one git source. */
function repositoryOf({ workspace }: Pick<RunRequest, "workspace">): GitSource | undefined {
  const [first, second] = (workspace?.sources ?? []).filter((source) => source.type === "git");
  return second === undefined ? first : undefined;
}
