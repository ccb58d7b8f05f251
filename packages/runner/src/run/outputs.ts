import { type OwnSandbox, toAmbitError } from "@ambit/core";
import {
  hasSetup,
  type OutputsReceipt,
  projectOf,
  type RunRequest,
  type SourceReceipt,
} from "@ambit/core/contract";
import {
  type ConnectionDecision,
  type LayerUse,
  type Log,
  loopTurns,
  type Sandbox,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type {
  Beginning,
  BeginOptions,
  FilledWorkspace,
  OutputsOfRun,
  WorkspaceService,
} from "../operator.js";
import { openOwnSandbox } from "../session/own-sandbox.js";
import type { Session, WorkspaceCommit } from "../session/session.js";
import { type PlannedRun, tokens } from "../tokens.js";
import type { TurnEnd } from "./run-state.js";

/** Takes the run's outputs out of its workspace, where the request asks for some. */
@injectable()
export class Outputs {
  #open: { readonly outputs: OutputsOfRun; readonly sandbox: Sandbox } | undefined;
  #receipt: OutputsReceipt | undefined;
  #session: Session | undefined;
  /** The commit that the workspace is at when this run gets it. */
  #began: WorkspaceCommit | undefined;
  #filled: FilledWorkspace = { sources: undefined, environment: undefined };
  #beginning: Beginning | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.workspaces) private readonly workspaces: WorkspaceService,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(tokens.log) private readonly log: Log,
    @inject(tokens.hasTenants) private readonly hasTenants: boolean,
  ) {}

  /** What left. Undefined where nothing did. */
  get receipt(): OutputsReceipt | undefined {
    return this.#receipt;
  }

  /** What was put in. */
  get filled(): FilledWorkspace {
    return this.#filled;
  }

  /** The layer that a new sandbox can begin with, by its name. Undefined: it begins empty. @throws the run's reason */
  async layer(): Promise<string | undefined> {
    this.#beginning = await this.workspaces.begin(this.run.request, this.#beginOptions);
    return this.#beginning?.layer;
  }

  /** Fills a new workspace. @throws SourceFailed, SetupFailed, SnapshotFailed, SandboxFailed; the run's reason */
  async fill(session: Session): Promise<void> {
    const { request } = this.run;
    this.#session = session;
    this.#began = session.commit;
    // From now on, this run may change it.
    session.commit = undefined;
    const asked = [
      ...(request.workspace === undefined ? [] : ["workspace.sources"]),
      ...(hasSetup(request.environment) ? ["environment"] : []),
    ];
    if (asked.length === 0) return;
    if (session.isEmpty) {
      this.#filled = await this.workspaces.fill(request, session.sandbox, {
        ...this.#beginOptions,
        begun: session.layer === undefined ? undefined : this.#beginning?.filled,
        report: (data) => this.events.emit({ type: "data", name: "setup", data }),
        warn: (warning) => this.events.warn(warning),
      });
      // A commit would lack what the lost workspace had.
      if (session.lost === undefined) this.#began = commitOf(request, this.#filled.sources);
      return;
    }
    const message = "isn't used: the session has a workspace already, which stays as it is";
    for (const path of asked) this.events.warn({ path, message });
  }

  get #beginOptions(): BeginOptions {
    const { request, plan } = this.run;
    return {
      open: (own) => this.#openOwn(own),
      openLayer: (own, name) => this.#openOwn({ ...own, secrets: [] }, { use: "make", name }),
      backend: plan.sandbox.actor,
      boundary: plan.boundary,
      // Without a project, it would be everyone's.
      mayKeep: !this.hasTenants || projectOf(request) !== undefined,
      log: this.log,
      signal: this.scope.signal,
    };
  }

  #openOwn(own: OwnSandbox, layer?: LayerUse): Promise<Sandbox> {
    const { events } = this;
    const decided = (decision: ConnectionDecision) =>
      // Its commands are the caller's, who must learn what they couldn't reach.
      own.subject === "environment" ? events.decisions.record(decision) : undefined;
    return openOwnSandbox(
      { ...own, layer },
      { plan: this.run.plan, scope: this.scope, log: this.log, decided },
    );
  }

  get areAsked(): boolean {
    return this.run.request.outputs !== undefined;
  }

  /** The workspace is as Ambit filled it. @throws OutputsFailed; the run's reason when it was aborted */
  async started(sandbox: Sandbox): Promise<void> {
    const outputs = this.workspaces.outputsOf(this.run.key, this.run.request);
    if (outputs === undefined) return;
    this.scope.defer(() => outputs.close());
    await outputs.started(sandbox, this.scope.signal);
    this.#open = { outputs, sandbox };
  }

  /**
   * Takes the files out. Never rejects.
   * @returns how the turn ended: a completed one fails if its files can't be taken out.
   */
  async collect(end: TurnEnd): Promise<TurnEnd> {
    const { signal } = this.scope;
    if (this.#open === undefined) return end;
    if (signal.aborted) {
      await this.#collectCutOff(this.#open);
      return end;
    }
    try {
      this.#receipt = await this.#open.outputs.collect(this.#open.sandbox, signal);
      for (const file of this.#receipt.files) {
        const { path, size, sha256 } = file;
        const url = fileUrl(this.run.id, path);
        this.events.emit({ type: "file", url, mediaType: "application/octet-stream", path, size, sha256 });
        // Others are served meanwhile.
        await loopTurns.take(url.length);
      }
      if (end.how === "completed" && this.run.request.outputs?.git !== undefined)
        await this.#push(this.#open.outputs, this.#receipt);
      return end;
    } catch (thrown) {
      const failure = toAmbitError(signal.aborted ? signal.reason : thrown);
      // An aborted run ends with the reason that it was aborted with: its outputs are not at fault.
      if (thrown !== signal.reason)
        this.log.error({ runId: this.run.id, error: thrown }, "a run's outputs could not be taken out");
      else if (this.#receipt === undefined) await this.#collectCutOff(this.#open);
      if (end.how === "completed" || signal.aborted) return { how: "failed", failure };
      // The question of a paused run, or an earlier failure, counts for more.
      this.events.warn({ path: "outputs", message: failure.message });
      return end;
    }
  }

  /** What a run made until it was cancelled or ran out of time. It may take half of the time in which the run must close. */
  async #collectCutOff({ outputs, sandbox }: { outputs: OutputsOfRun; sandbox: Sandbox }): Promise<void> {
    const { code } = toAmbitError(this.scope.signal.reason);
    if (code !== "run_cancelled" && code !== "run_timed_out") return;
    const late = AbortSignal.timeout(this.scope.limitMs / 2);
    try {
      this.#receipt = await outputs.collect(sandbox, late);
    } catch (error) {
      this.log.info({ runId: this.run.id, error }, "the outputs of a run that was cut off weren't taken out");
      const message = "weren't taken out: the run was cut off, and there was no time left for them";
      this.events.warn({ path: "outputs", message });
    }
  }

  /** Only a turn that the agent completed leaves as a commit. @throws OutputsFailed, SandboxFailed; the run's reason */
  async #push(outputs: OutputsOfRun, receipt: OutputsReceipt): Promise<void> {
    const own = this.workspaces.ownSandboxes(this.run.request).get("outputs.git");
    if (own === undefined) return;
    const repository = repositoryOf(this.run.request);
    const began = this.#began?.repository === repository ? this.#began : undefined;
    const from = began && { commit: began.commit, isEarlier: this.#filled.sources === undefined };
    const pushed = await outputs.push(from, () => this.#openOwn(own), this.scope.signal);
    // What didn't leave isn't in the commit: the workspace is at none then.
    if (this.#session !== undefined && receipt.patch?.complete === true) {
      const next = pushed?.pushed === true ? { repository, commit: pushed.commit } : undefined;
      this.#session.commit = pushed === undefined ? began : next;
    }
    if (pushed === undefined) {
      const message = "has no commit: nothing in the repository changed";
      return this.events.warn({ path: "outputs.git", message });
    }
    // It is pushed, whatever becomes of its pull request.
    this.#receipt = { ...receipt, git: pushed };
    const pullRequest = await outputs.openPullRequest(pushed, this.scope.signal);
    if (pullRequest === undefined) return;
    this.#receipt = { ...receipt, git: { ...pushed, pullRequest } };
    const data = { ...pullRequest, branch: pushed.branch };
    this.events.emit({ type: "data", name: "pull_request", data });
  }
}

/** What a new workspace is at. Pure. */
function commitOf(
  request: RunRequest,
  sources: readonly SourceReceipt[] | undefined,
): WorkspaceCommit | undefined {
  const commit = sources?.find(({ type }) => type === "git")?.commit;
  return commit === undefined ? undefined : { repository: repositoryOf(request), commit };
}

/** The git sources of a request: a commit on top of a workspace's is for the same ones. Pure. */
function repositoryOf({ workspace }: RunRequest): string {
  const sources = workspace?.sources.filter((source) => source.type === "git") ?? [];
  return JSON.stringify(sources.map(({ url, into = "" }) => [url, into]));
}

function fileUrl(id: string, path: string): string {
  return `/runs/${encodeURIComponent(id)}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}
