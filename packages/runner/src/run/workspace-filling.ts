import {
  callPlugin,
  messageOf,
  NotFound,
  PluginBrokeContract,
  type PluginOffer,
  pluginReturns,
  SnapshotFailed,
} from "@ambit/core";
import {
  type ForkReceipt,
  hasSetup,
  projectOf,
  type RunRequest,
  type Skill,
  type SourceReceipt,
} from "@ambit/core/contract";
import {
  type FileEntry,
  type Harness,
  type LayerUse,
  type Log,
  type Sandbox,
  unlessAborted,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { ArchiveFacts, Beginning, BeginOptions, FilledWorkspace, SessionState } from "../operator.js";
import { openOwnSandbox } from "../session/own-sandbox.js";
import type { Session, WorkspaceCommit } from "../session/session.js";
import { Sessions } from "../session/sessions.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";

/** The commit on which a run's changes are based. */
export interface BaseCommit extends WorkspaceCommit {
  /** Whether an earlier run of the session began with it or pushed it. */
  readonly isEarlier: boolean;
}

/**
 * What a run's workspace begins with: a copy of another session, the request's sources, and what its setup commands make of
 * them. Opens the request's ports, too.
 */
@injectable()
export class WorkspaceFilling {
  #fork: ForkReceipt | undefined;
  #filled: FilledWorkspace = { sources: undefined, environment: undefined };
  #commit: WorkspaceCommit | undefined;
  /** What a new sandbox begins with. */
  #beginning: Beginning | undefined;

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
  get baseCommit(): BaseCommit | undefined {
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
export function repositoryOf({ workspace }: RunRequest): string {
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
