/** What goes into a run's workspace, and what is taken out of it. */

import { randomUUID } from "node:crypto";
import { extname } from "node:path";
import {
  type AcceptedPlan,
  callPlugin,
  inOffer,
  messageOf,
  NotFound,
  type OwnSandbox,
  ofBoundary,
  ofOffer,
  PluginBrokeContract,
  type PluginOffer,
  pluginReturns,
  SnapshotFailed,
  toAmbitError,
} from "@ambit/core";
import {
  type ForkReceipt,
  hasSetup,
  type OutputsReceipt,
  projectOf,
  type RunRequest,
  type Skill,
  type SourceReceipt,
} from "@ambit/core/contract";
import {
  type ConnectionDecision,
  type FileEntry,
  type Harness,
  type LayerUse,
  type Log,
  type Sandbox,
  type SandboxFailed,
  type SandboxSpec,
  unlessAborted,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type {
  ArchiveFacts,
  Beginning,
  BeginOptions,
  FilledWorkspace,
  OutputsOfRun,
  SessionState,
} from "../operator.js";
import { requireOpened, type Session, type WorkspaceCommit } from "../session/session.js";
import { Sessions } from "../session/sessions.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import type { TurnEnd } from "./run-state.js";

/** A workspace whose files are to be taken out. */
interface WatchedWorkspace {
  readonly outputs: OutputsOfRun;
  readonly session: Session;
  readonly sandbox: Sandbox;
  readonly base: BaseCommit | undefined;
}

/** The commit on which a run's changes are based. */
interface BaseCommit extends WorkspaceCommit {
  /** Whether an earlier run of the session began with it or pushed it. */
  readonly isEarlier: boolean;
}

/**
 * The workspace of a run: what it begins with (a copy of another session, the request's sources, and what its setup commands
 * make of them), the request's ports, and the files and changes that leave it.
 */
@injectable()
export class RunWorkspace {
  #fork: ForkReceipt | undefined;
  #filled: FilledWorkspace = { sources: undefined, environment: undefined };
  #commit: WorkspaceCommit | undefined;
  /** What a new sandbox begins with. */
  #beginning: Beginning | undefined;
  #watched: WatchedWorkspace | undefined;
  #receipt: OutputsReceipt | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.services) private readonly services: RunnerServices,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.log) private readonly log: Log,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(Sessions) private readonly sessions: Sessions,
  ) {}

  /** The session that was copied. Undefined where none was. */
  get fork(): ForkReceipt | undefined {
    return this.#fork;
  }

  /** What was put into the workspace. */
  get filled(): FilledWorkspace {
    return this.#filled;
  }

  /** The commit that the workspace is at when the agent gets it. Undefined where that isn't known. */
  get #baseCommit(): BaseCommit | undefined {
    return this.#commit && { ...this.#commit, isEarlier: this.#filled.sources === undefined };
  }

  /** The layer that a new sandbox can begin with, by its name. Undefined: it begins empty. @throws the run's reason */
  async findLayer(): Promise<string | undefined> {
    this.#beginning = await this.services.workspaces.begin(this.run.request, this.#beginOptions);
    return this.#beginning?.layer;
  }

  /**
   * Fills a new workspace, and opens the ports.
   * @throws NotFound, SessionInUse, SourceFailed, SetupFailed, SnapshotFailed, StoreFailed, SandboxFailed, AtCapacity,
   * PluginBrokeContract; the run's reason
   */
  async fill(session: Session): Promise<void> {
    await this.#copySession(session);
    await this.#fillWorkspace(session);
    await this.#removeGitLocks(session);
    await this.#openPorts(session);
  }

  async #copySession(session: Session): Promise<void> {
    const { fork } = this.run.request;
    if (fork === undefined) return;
    if (!session.isEmpty) {
      const message = "isn't used: the session has begun already, and stays as it is";
      this.events.warn({ path: "fork", message });
      return;
    }
    const { facts, state } = await this.#copyFiles(session, fork);
    if (!session.secrets.mayRemember(state.secrets))
      throw new SnapshotFailed(
        "The session to fork has used more credentials than one session may have. Fork an earlier snapshot.",
      );
    session.conversation = state.conversation;
    session.userMessages = state.userMessages;
    session.wasCutOff = true;
    session.secrets.remember(state.secrets, this.services.hideSecrets);
    this.events.redactor.hide(session.secrets.all);
    const { sha256, bytes, entries } = facts;
    this.#fork = { ...fork, sha256, bytes, entries };
  }

  async #copyFiles(
    { sandbox }: Session,
    fork: { readonly session?: string | undefined; readonly snapshot?: string | undefined },
  ): Promise<{ readonly facts: ArchiveFacts; readonly state: SessionState }> {
    const { request, plan } = this.run;
    const { signal } = this.scope;
    const { snapshots } = this.services.workspaces;
    // Refused before: a request without a service isn't admitted.
    if (snapshots === undefined)
      throw new SnapshotFailed("Sessions can't be forked here: this runner has no service for workspaces.");
    const into = { sandbox, backend: plan.sandbox.actor.name };
    const project = projectOf(request);
    if (fork.snapshot !== undefined) return snapshots.restore(fork.snapshot, project, into, signal);
    const id = fork.session ?? "";
    const copied = await this.sessions.using(id, project, async (source) => ({
      facts: await snapshots.copy(source.asSource, into, signal),
      state: source.state,
    }));
    if (copied === undefined)
      throw new NotFound(
        `There is no session ${JSON.stringify(id)} to fork here: it has ended, never began, or is another replica's. A snapshot can be forked on any replica.`,
      );
    return copied;
  }

  async #fillWorkspace(session: Session): Promise<void> {
    const { request } = this.run;
    this.#commit = session.commit;
    // From now on, this run may change it.
    session.commit = undefined;
    const paths = [
      ...(request.workspace === undefined ? [] : ["workspace.sources"]),
      ...(hasSetup(request.environment) ? ["environment"] : []),
    ];
    if (paths.length === 0) return;
    if (!session.isEmpty) {
      const message = "isn't used: the session has a workspace already, which stays as it is";
      for (const path of paths) this.events.warn({ path, message });
      return;
    }
    this.#filled = await this.services.workspaces.fill(request, session.sandbox, {
      ...this.#beginOptions,
      begun: session.layer === undefined ? undefined : this.#beginning?.filled,
      report: (data) => this.events.emit({ type: "data", name: "setup", data }),
      received: (source, percent) => this.events.stages.advance({ source, percent }),
      warn: (warning) => this.events.warn(warning),
    });
    // A commit would lack what the lost workspace had.
    if (session.lost === undefined) this.#commit = commitOf(request, this.#filled.sources);
  }

  get #beginOptions(): BeginOptions {
    const { request, plan } = this.run;
    return {
      open: (own) => this.#openSetup({ own }),
      openLayer: (own, name) =>
        this.#openSetup({ own: { ...own, secrets: [] }, layer: { use: "make", name } }),
      backend: plan.sandbox.actor,
      boundary: plan.boundary,
      // Without a project, it would be everyone's.
      mayKeep: !this.services.hasTenants || projectOf(request) !== undefined,
      log: this.log,
      signal: this.scope.signal,
    };
  }

  /** A sandbox of Ambit's own, for the sources and the setup commands. */
  #openSetup({
    own,
    layer,
  }: {
    own: Parameters<BeginOptions["open"]>[0];
    layer?: LayerUse;
  }): Promise<Sandbox> {
    const { run, scope, log, events } = this;
    const { decisions } = events;
    return openOwnSandbox(
      { ...own, layer },
      {
        plan: run.plan,
        scope,
        log,
        // The commands of an environment are the caller's, who must learn what they couldn't reach.
        decided: (decision) => own.subject === "environment" && decisions.record(decision),
      },
    );
  }

  /** The commands of an interrupted turn don't run any more: what they locked would stay locked. */
  async #removeGitLocks(session: Session): Promise<void> {
    const { wasCutOff } = session;
    session.wasCutOff = true;
    if (!wasCutOff) return;
    const { signal } = this.scope;
    const paths = await this.services.workspaces
      .removeGitLocks(session.sandbox, signal)
      .catch((error: unknown) => {
        signal.throwIfAborted();
        // The agent may not need git. A sandbox in which nothing starts fails the run when the agent is started.
        this.log.warn({ error: messageOf(error) }, "locks of git couldn't be looked for");
        return [];
      });
    if (paths.length === 0) return;
    const message = `had locks of git that an interrupted command had left there; they were removed: ${paths.join(", ")}`;
    this.events.warn({ path: "workspace", message });
  }

  /** Gives the ports of the request their URLs. They stay with the session: its next run gets the same origins. */
  async #openPorts(session: Session): Promise<void> {
    const { request, plan } = this.run;
    const { sandbox } = session;
    for (const { port, name } of request.ports ?? []) {
      if (sandbox.connect === undefined) {
        const who = `Sandbox '${plan.sandbox.actor.name}'`;
        throw new PluginBrokeContract(
          `${who} carries inbound connections, and its session has no connect().`,
        );
      }
      let preview = session.previews.get(port);
      if (preview === undefined) {
        const connect = sandbox.connect.bind(sandbox);
        const project = projectOf(request);
        preview = this.services.previews.open({ port, project, connect: () => connect(port) });
        session.previews.set(port, preview);
        session.scope.defer(preview.close);
      }
      const { url, expiresAt } = await preview.link();
      this.events.emit({ type: "data", name: "preview", data: { port, name, url, expiresAt } });
    }
  }

  /** What was taken out. Undefined where nothing was. */
  get receipt(): OutputsReceipt | undefined {
    return this.#receipt;
  }

  /** Notes how the workspace is before the agent changes it. @throws OutputsFailed; the run's reason when it was aborted */
  async watch(session: Session): Promise<void> {
    const outputs = this.services.workspaces.outputsOf(this.run.key, this.run.request);
    if (outputs === undefined) return;
    const { sandbox } = session;
    this.scope.defer(() => outputs.close());
    await outputs.started(sandbox, this.scope.signal);
    this.#watched = { outputs, session, sandbox, base: this.#baseCommit };
  }

  /**
   * Takes the files out. Never rejects.
   * @returns how the turn ended: a completed one fails if its files can't be taken out.
   */
  async collect(end: TurnEnd): Promise<TurnEnd> {
    const { signal } = this.scope;
    const workspace = this.#watched;
    if (workspace === undefined) return end;
    this.events.entered("collecting");
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

/** The commit that a new workspace is at. Pure. */
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

/** Where agents look for skills by default. */
const usualSkillsFolder = ".agents/skills";

/** Puts the request's files into the workspace of its sandbox. @param backend of the sandbox, for its errors. */
export async function fillWorkspace(
  sandbox: Sandbox,
  backend: PluginOffer,
  request: RunRequest,
  { skillsFolder = usualSkillsFolder }: Pick<Harness, "skillsFolder">,
  signal: AbortSignal,
): Promise<void> {
  const files = workspaceFiles(request, sandbox.workspace, skillsFolder);
  if (files.length === 0) return;
  await unlessAborted(signal, () =>
    callPlugin(backend, "writeFiles", pluginReturns.nothing, () => sandbox.writeFiles(files)),
  );
}

/** The files of a new workspace: those of the request, and its skills where agents look for them. Pure. */
function workspaceFiles(
  request: RunRequest,
  workspace: string,
  skillsFolder: string = usualSkillsFolder,
): readonly FileEntry[] {
  const files = request.harnessFiles.map(({ path, content }) => ({ path: `${workspace}/${path}`, content }));
  return [
    ...files,
    ...request.skills.flatMap((skill) => skillFiles(skill, `${workspace}/${skillsFolder}/${skill.name}`)),
  ];
}

/** A folder in the Agent Skills format: `SKILL.md` with its front matter, and the files next to it. */
function skillFiles(skill: Skill, folder: string): FileEntry[] {
  const frontMatter = [
    "---",
    `name: ${skill.name}`,
    `description: ${JSON.stringify(skill.description)}`,
    ...(skill.disableModelInvocation === true ? ["disable-model-invocation: true"] : []),
    "---",
  ];
  const files = (skill.files ?? []).map(({ path, content, executable }) => ({
    path: `${folder}/${path}`,
    content,
    // Executable only if both the file and its skill allow it.
    executable: executable === true && skill.allowExecutableFiles === true,
  }));
  return [{ path: `${folder}/SKILL.md`, content: `${frontMatter.join("\n")}\n\n${skill.body}\n` }, ...files];
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

/** The types of files that a chat or a page shows differently from a download. An SVG is a program, too: it stays a download. */
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
function mediaTypeOf(path: string): string {
  return mediaTypes[extname(path).toLowerCase()] ?? "application/octet-stream";
}

interface OpenOptions {
  readonly plan: AcceptedPlan;
  readonly scope: OwnedScope;
  readonly log: Log;
  /** Called for every connection that reaches the boundary's proxy. */
  readonly decided: (decision: ConnectionDecision) => void;
}

/**
 * Opens a sandbox for a program of Ambit's own, of the backend that the plan names. It ends with the run if it isn't closed
 * before.
 * @throws SandboxFailed, PluginBrokeContract; the run's reason
 */
async function openOwnSandbox(
  { subject, boundary, secrets, layer }: OwnSandbox & Pick<SandboxSpec, "layer">,
  { plan, scope, log, decided }: OpenOptions,
): Promise<Sandbox> {
  const planned = plan.own.get(subject);
  if (planned === undefined) throw new TypeError(`the plan has no sandbox for ${subject}`);
  const { actor } = planned;
  const required = ofBoundary(boundary).map(({ capability }) => capability);
  const spec = {
    id: randomUUID(),
    boundary,
    upstreamProxy: plan.upstreamProxy,
    required,
    requiredPaths: [],
    onDecision: (decision: ConnectionDecision) => {
      const { target, allowed, reason } = decision;
      if (!allowed)
        log.info({ subject, target, reason }, "a sandbox of Ambit's own was refused a connection");
      decided(decision);
    },
    onFailure: (failure: SandboxFailed) => scope.abort(failure),
    secrets: secrets.length > 0 ? secrets : undefined,
    layer,
    log,
  };
  return unlessAborted(scope.signal, async () => {
    const opened = await callPlugin(actor, "open", pluginReturns.sandbox, async () => {
      const sandbox = await actor.open(spec, scope);
      if (sandbox instanceof Object) scope.defer(() => inOffer(actor, () => sandbox.close()));
      return sandbox;
    });
    requireOpened(actor, opened, true, secrets);
    return ofOffer(actor, opened);
  });
}
