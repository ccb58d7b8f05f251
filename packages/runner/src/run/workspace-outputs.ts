import { extname } from "node:path";
import { toAmbitError } from "@ambit/core";
import type { OutputsReceipt } from "@ambit/core/contract";
import type { Log, Sandbox } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { OutputsOfRun } from "../operator.js";
import { openOwnSandbox } from "../session/own-sandbox.js";
import type { Session, WorkspaceCommit } from "../session/session.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import type { TurnEnd } from "./run-state.js";
import { type BaseCommit, repositoryOf } from "./workspace-filling.js";

/** A workspace whose files are to be taken out. */
interface WatchedWorkspace {
  readonly outputs: OutputsOfRun;
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly base: BaseCommit | undefined;
}

/** Takes files and changes out of a run's workspace, where the request asks for some. */
@injectable()
export class WorkspaceOutputs {
  #workspace: WatchedWorkspace | undefined;
  #receipt: OutputsReceipt | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.services) private readonly services: RunnerServices,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.log) private readonly log: Log,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {}

  /** What was taken out. Undefined where nothing was. */
  get receipt(): OutputsReceipt | undefined {
    return this.#receipt;
  }

  /**
   * Notes how the workspace is before the agent changes it.
   * @param base the commit that it is at. @throws OutputsFailed; the run's reason when it was aborted
   */
  async watch(session: Session, base: BaseCommit | undefined): Promise<void> {
    const outputs = this.services.workspaces.outputsOf(this.run.key, this.run.request);
    if (outputs === undefined) return;
    const { sandbox } = session;
    this.scope.defer(() => outputs.close());
    await outputs.started(sandbox, this.scope.signal);
    this.#workspace = { outputs, session, sandbox, base };
  }

  /**
   * Takes the files out. Never rejects.
   * @returns how the turn ended: a completed one fails if its files can't be taken out.
   */
  async collect(end: TurnEnd): Promise<TurnEnd> {
    const { signal } = this.scope;
    const workspace = this.#workspace;
    if (workspace === undefined) return end;
    if (signal.aborted) {
      await this.#collectCutOff(workspace);
      return end;
    }
    try {
      const receipt = await workspace.outputs.collect(workspace.sandbox, signal);
      this.#receipt = receipt;
      for (const file of receipt.files) {
        const { path, size, sha256 } = file;
        const url = fileUrl(this.run.id, path);
        this.events.emit({ type: "file", url, mediaType: mediaTypeOf(path), path, size, sha256 });
      }
      if (end.how === "completed" && this.run.request.outputs?.git !== undefined)
        await this.#push(workspace, receipt);
      return end;
    } catch (thrown) {
      const failure = toAmbitError(signal.aborted ? signal.reason : thrown);
      // An aborted run ends with the reason that it was aborted with: its outputs are not at fault.
      if (thrown !== signal.reason)
        this.log.error({ runId: this.run.id, error: thrown }, "a run's outputs could not be taken out");
      else if (this.#receipt === undefined) await this.#collectCutOff(workspace);
      if (end.how === "completed" || signal.aborted) return { how: "failed", failure };
      // The question of a paused run, or an earlier failure, counts for more.
      this.events.warn({ path: "outputs", message: failure.message });
      return end;
    }
  }

  /** What a run made until it was cancelled or ran out of time. It may take half of the time in which the run must close. */
  async #collectCutOff({ outputs, sandbox }: WatchedWorkspace): Promise<void> {
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
  async #push({ outputs, session, base }: WatchedWorkspace, receipt: OutputsReceipt): Promise<void> {
    const { run, scope, log } = this;
    const own = this.services.workspaces.ownSandboxes(run.request).get("outputs.git");
    if (own === undefined) return;
    const repository = repositoryOf(run.request);
    const from = base?.repository === repository ? base : undefined;
    const open = () => openOwnSandbox(own, { plan: run.plan, scope, log, decided: () => {} });
    const pushed = await outputs.push(
      from && { commit: from.commit, isEarlier: from.isEarlier },
      open,
      scope.signal,
    );
    if (receipt.patch?.complete === true) session.commit = nextCommit(repository, from, pushed);
    if (pushed === undefined) {
      const message = "has no commit: nothing in the repository changed";
      return this.events.warn({ path: "outputs.git", message });
    }
    // It is pushed, whatever becomes of its pull request.
    this.#receipt = { ...receipt, git: pushed };
    const pullRequest = await outputs.openPullRequest(pushed, scope.signal);
    if (pullRequest === undefined) return;
    this.#receipt = { ...receipt, git: { ...pushed, pullRequest } };
    const data = { ...pullRequest, branch: pushed.branch };
    this.events.emit({ type: "data", name: "pull_request", data });
  }
}

/** The commit that the whole workspace is at after a push; undefined where part of it isn't in a commit. Pure. */
function nextCommit(
  repository: string,
  base: BaseCommit | undefined,
  pushed: OutputsReceipt["git"],
): WorkspaceCommit | undefined {
  if (pushed === undefined) return base && { repository, commit: base.commit };
  return pushed.pushed ? { repository, commit: pushed.commit } : undefined;
}

/** Where the server has a file of a run's outputs. Pure. */
export function fileUrl(id: string, path: string): string {
  return `/runs/${encodeURIComponent(id)}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** Of files that a chat or a page shows differently from a download. An SVG is a program, too: it stays a download. */
const mediaTypes: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".csv": "text/csv",
  ".gif": "image/gif",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".json": "application/json",
  ".md": "text/markdown",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".txt": "text/plain",
  ".wav": "audio/wav",
  ".webm": "video/webm",
  ".webp": "image/webp",
};

/** What the name of a file promises; what the agent wrote may be something else. Pure. */
export function mediaTypeOf(path: string): string {
  return mediaTypes[extname(path).toLowerCase()] ?? "application/octet-stream";
}
