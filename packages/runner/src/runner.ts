import { type KeyObject, randomUUID } from "node:crypto";
import {
  AtCapacity,
  callPlugin,
  NotFound,
  offerTitle,
  originOf,
  PluginBrokeContract,
  type PluginOffer,
  pluginReturns,
  type Registry,
  RequestInvalid,
  RunCancelled,
  SnapshotFailed,
} from "@ambit/core";
import {
  type ContentBlock,
  type Failure,
  type Issue,
  idOfRun,
  projectOf,
  runKey,
  type SnapshotInfo,
} from "@ambit/core/contract";
import type { LocalConnection, Log, PrewarmClaim, RunnerState, Sandbox } from "@ambit/core/plugin";
import { type DependencyContainer, container as global, Lifecycle } from "tsyringe";
import {
  type AdmissionRules,
  type AdmittedRun,
  admit,
  harnessesOf,
  prewarmBody,
  prewarmedStart,
  prewarmIssues,
} from "./admission/admission.js";
import { type RunOptions, strictestCeiling } from "./admission/caller-rules.js";
import { Commands } from "./admission/commands.js";
import { type AnswerLedger, ApprovedCalls, RunnersLedger } from "./call/answer.js";
import { ArgumentsChecker } from "./call/arguments/checker.js";
import { Ask } from "./call/ask.js";
import { Calls } from "./call/call.js";
import { CallEvents } from "./call/call-events.js";
import { CallPermissions } from "./call/permissions.js";
import { hasStoredAnswer } from "./call/request-answers.js";
import { RunCalls } from "./call/run-calls.js";
import { RunTools } from "./call/run-tools.js";
import {
  closeActors,
  notifyPrewarmed,
  notifyRefused,
  type RefusedRequest,
  RunLogger,
} from "./events/observation.js";
import { RunEvents } from "./events/run-events.js";
import { pathBeyondDepth, tooDeep } from "./json-values.js";
import { defaultMemoryMb, FairSlots, freeMemory, MemoryGuard } from "./lifetime/fair-shares.js";
import { Deadlines, OwnedScope, Pause, RightToAct } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import { SessionSpending } from "./model/budget.js";
import { ModelCalls } from "./model/model-calls.js";
import {
  type HideSecrets,
  noCredentialRefresh,
  noPreviews,
  noWorkspaces,
  type WorkspaceService,
} from "./operator.js";
import { askedIn, type RequestedTelemetry } from "./parse/callers-trace.js";
import { AgentTurn } from "./run/agent-turn.js";
import { Run } from "./run/run.js";
import { actorsInDoubt } from "./run/run-state.js";
import { RunWorkspace } from "./run/workspace.js";
import { AgentPool } from "./session/agent-pool.js";
import { discardSession } from "./session/next-sandbox.js";
import type { Session, SessionHolding, SessionKeeper, SessionName } from "./session/session.js";
import { Sessions } from "./session/sessions.js";
import { AgentStarter } from "./session/start-agent.js";
import { tokens } from "./tokens.js";

/** One of the slots for concurrent runs. Released when the run's records have ended, or by `release`. */
export interface Slot {
  /**
   * Steps 1 and 2.
   * @throws RequestInvalid, BoundaryRefused, CommandExecuted; the slot is then free again.
   */
  admit(body: unknown, options: RunOptions): Promise<Run>;
  release(): void;
}

/** Plans and runs requests: the entry point for a server or a command line. */
export class Runner {
  readonly #container: DependencyContainer;
  readonly #sessions: Sessions;
  readonly #pool: AgentPool;
  readonly #argumentsChecker: ArgumentsChecker;
  readonly #runs = new Map<string, Run>();
  readonly #memory: MemoryGuard;
  readonly #commands = new Commands();
  /** What a refused request says of its trace, by the error that refused it. */
  readonly #refused = new WeakMap<object, RequestedTelemetry>();
  #taken = 0;
  #draining = false;

  constructor(readonly options: RunnerOptions) {
    const { limits, log } = options;
    this.#container = composeRunner(options);
    this.#sessions = this.#container.resolve(Sessions);
    this.#pool = this.#container.resolve(AgentPool);
    this.#argumentsChecker = this.#container.resolve(ArgumentsChecker);
    this.#memory = new MemoryGuard(limits.memoryMb ?? defaultMemoryMb(), () => this.#runs.values(), log);
  }

  get registry(): Registry {
    return this.options.registry;
  }

  /** Throws if there is no slot now. @throws AtCapacity */
  requireRoom(): void {
    const { concurrentRuns } = this.options.limits;
    this.#refuseWhileDraining();
    if (this.#taken >= concurrentRuns)
      throw new AtCapacity(`Runner at capacity (${concurrentRuns} concurrent runs)`);
    this.#memory.requireRoom();
  }

  /** Takes a slot before any other work. @throws AtCapacity */
  reserve(): Slot {
    this.requireRoom();
    this.#taken += 1;
    let free = () => {
      this.#taken -= 1;
      free = () => {};
    };
    return {
      release: () => free(),
      admit: async (body, options) => {
        try {
          const admitted = await this.plan(body, options);
          this.#refuseWhileDraining();
          this.#requireNewId(admitted.request.runId, options);
          this.#commands.require(admitted);
          return this.#begin(admitted, options, () => free());
        } catch (error) {
          free();
          throw error;
        }
      },
    };
  }

  /**
   * Tells the observers about a request that starts no run. A caller of `admit` calls it with what that throws, and with
   * its own refusals: this way each request is counted once.
   */
  refused(failure: Failure, request: RefusedRequest & { readonly error?: unknown } = {}): void {
    const { error, ...facts } = request;
    const wishes = typeof error === "object" && error !== null ? this.#refused.get(error) : undefined;
    notifyRefused(this.registry.observers, failure, { ...facts, ...wishes }, this.options.log);
  }

  /** Called before that many bytes are read for a request. @throws AtCapacity if the runner lacks the memory */
  requireMemory(bytes: number): void {
    this.#memory.requireRoom(bytes / (1024 * 1024));
  }

  /** Steps 1 and 2 only: touches nothing. @throws RequestInvalid, BoundaryRefused */
  async plan(body: unknown, asker?: Pick<RunOptions, "caller" | "trace">): Promise<AdmittedRun> {
    const shared = this.#container.resolve(RunnersLedger);
    const { interactionKey } = this.options;
    const rules: AdmissionRules = {
      ...this.options,
      hasStoredAnswer: (request) => hasStoredAnswer(request, shared.ledger, interactionKey),
    };
    try {
      return await admit(body, this.registry, rules, asker);
    } catch (error) {
      if (typeof error === "object" && error !== null) this.#refused.set(error, askedIn(body));
      throw error;
    }
  }

  /** What is wrong with the requests for which agents are to be started ahead; empty if nothing is. */
  get prewarmIssues(): readonly Issue[] {
    return prewarmIssues(this.registry, this.options.contract);
  }

  /** From now on, the agents that the deployer wants are started ahead. */
  prewarm(): void {
    const { permissionCeiling, limits, freeMemory: free = freeMemory } = this.options;
    this.#pool.open({
      harnesses: harnessesOf(this.registry),
      plan: async (harness, prewarm) => {
        const planned = await this.plan(prewarmBody(harness, prewarm));
        return prewarmedStart(planned, prewarm, permissionCeiling);
      },
      room: () => limits.concurrentRuns - this.#taken,
      freeMemory: free,
    });
  }

  /** Whether a process of some run made this connection. @throws PluginBrokeContract for a backend that throws */
  async isCalledByRun(connection: LocalConnection): Promise<boolean> {
    const answers = this.registry
      .knownCandidates()
      .sandboxes.map(({ actor }) =>
        callPlugin(
          actor,
          "madeConnection",
          pluginReturns.yesOrNo,
          async () => actor.madeConnection?.(connection) ?? false,
        ),
      );
    return (await Promise.all(answers)).includes(true);
  }

  /** Ends a run early; it still ends in its one result. @throws NotFound */
  cancel(key: string): void {
    this.#run(key).cancel(new RunCancelled("The run was cancelled.", "caller"));
  }

  /**
   * A live answer to what a run asks its user. @throws NotFound unless both are open; RequestInvalid for a wrong answer
   */
  answer(key: string, interactionId: string, body: unknown): void {
    const deep = pathBeyondDepth(body);
    if (deep !== undefined) throw new RequestInvalid([tooDeep(deep)]);
    this.#run(key).answer(interactionId, body);
  }

  /**
   * A message of the user for a run's agent in its turn.
   * @throws NotFound for a run that isn't this runner's; RequestInvalid where the agent can't take it now
   */
  steer(key: string, content: readonly ContentBlock[]): Promise<void> {
    return this.#run(key).steer(content);
  }

  /** From now on, answers are kept beyond this process. */
  keepAnswersIn(ledger: AnswerLedger): void {
    this.#container.resolve(RunnersLedger).ledger = ledger;
  }

  /** From now on, sessions whose sandboxes outlive this process are kept beyond it, and so is their usage. */
  keepSessionsIn(keeper: SessionKeeper): void {
    this.#sessions.keeper = keeper;
    this.#container.resolve(SessionSpending).keeper = keeper;
  }

  /**
   * A plugin left an error unhandled: an `error` event without a listener, or a rejection that nothing awaits. What its actors
   * still do is unknown, so every run that they act in ends, and they are probed again; the other runs go on.
   *
   * @returns whether they can: false for what all runs share, such as the store.
   */
  faulted(offer: PluginOffer, error: unknown): boolean {
    const message = `${offerTitle(offer)} left an error unhandled; the runner's log has the cause.`;
    const origin = originOf(offer);
    this.options.log.error({ plugin: origin?.plugin, error }, message);
    this.registry.faulted(offer, error);
    if (origin === undefined || origin.kind === "store" || origin.kind === "blobs") return false;
    // An observer acts in no run: nothing of one depends on it.
    if (origin.kind === "observer") return true;
    const fault = new PluginBrokeContract(message, { cause: error });
    this.#sessions.interruptIn(origin.plugin, fault);
    for (const run of this.#runs.values()) {
      const actors = run.plan.participants.map(({ probed }) => originOf(probed.actor)?.plugin);
      if (actors.includes(origin.plugin)) run.cancel(fault);
    }
    return true;
  }

  /** The named sessions that are open here. */
  get sessions(): readonly SessionName[] {
    return this.#sessions.names;
  }

  /** Whether a session is open here, or a run is about to open it. */
  hasSession({ session, project }: SessionName): boolean {
    const isOpen = this.sessions.some((open) => open.session === session && open.project === project);
    return isOpen || this.runIn(session, project) !== undefined;
  }

  /** The project of a run in progress here. @throws NotFound */
  projectOf(key: string): string | undefined {
    return projectOf(this.#run(key).request);
  }

  /** Whether a run with this key is in progress here. */
  has(key: string): boolean {
    return this.#runs.has(key);
  }

  /** The run that has a session of the project now: of several that were admitted, the first. */
  runIn(sessionId: string, project: string | undefined): Run | undefined {
    return [...this.#runs.values()].find(
      ({ request }) => request.sessionId === sessionId && projectOf(request) === project,
    );
  }

  /** Ends a session of the project, and the run that uses it. False when the project has none of that id. */
  async endSession(sessionId: string, projectId?: string): Promise<boolean> {
    const project = projectOf({ projectId });
    const users = [...this.#runs.values()].filter(
      ({ request }) => request.sessionId === sessionId && projectOf(request) === project,
    );
    for (const run of users) run.cancel(new RunCancelled("The session was ended.", "caller"));
    await Promise.all(users.map((run) => run.ended));
    return (await this.#sessions.end(sessionId, project)) || users.length > 0;
  }

  /** A kept copy of an idle session; undefined if it isn't here. @throws SessionInUse, SnapshotFailed, StoreFailed */
  snapshot(name: SessionName, signal: AbortSignal): ReturnType<typeof takeSnapshot> {
    return takeSnapshot(this.#sessions, this.options.workspaces, name, signal);
  }

  /**
   * The sandbox of a session that is open here, kept or with its run: to look into it beside that run. Undefined if there is none.
   * @throws RequestInvalid
   */
  sandboxOf({ session, project }: SessionName): Sandbox | undefined {
    return this.#sessions.opened(session, project)?.sandbox;
  }

  /**
   * Lets a person do something in the sandbox of an idle session, which no run gets meanwhile. The session's next run is warned
   * of it. Undefined if there is none of that name here.
   *
   * @param visitor for the next run's warning: `the operator`
   * @param act its signal aborts when the session is ended, when its sandbox has failed, or this runner ends. It calls `begin` when
   * the person can act
   * @throws RequestInvalid for a sandbox without a boundary, or with a folder of the user's; SessionInUse, AtCapacity; what `act`
   * throws
   */
  async visit<Result>(
    { session: id, project }: SessionName,
    visitor: string,
    act: (sandbox: Sandbox, signal: AbortSignal, begin: () => void) => Promise<Result>,
  ): Promise<Result | undefined> {
    this.#refuseWhileDraining();
    const interrupt = new AbortController();
    const visit = async (session: Session) => {
      interrupt.signal.throwIfAborted();
      const issue = whyNoVisit(session);
      if (issue !== undefined) throw new RequestInvalid([{ path: "sessionId", message: issue }]);
      return await session.visit(visitor, interrupt, (begin) =>
        act(session.sandbox, interrupt.signal, begin),
      );
    };
    const user = `a terminal of ${visitor}: close it, or wait until it ends`;
    return await this.#sessions.using(id, project, visit, { user, interrupt });
  }

  /** Closes all sandboxes at once, except for those that another runner can continue. */
  abandonSessions(): Promise<void> {
    return this.#sessions.abandon();
  }

  /** Removes the remains of a session of another runner. */
  discardSession(left: SessionHolding, project: string | undefined): Promise<void> {
    const sandboxes = this.registry.knownCandidates().sandboxes.map(({ actor }) => actor);
    const { workspaces, log } = this.options;
    return discardSession(left, project, sandboxes, workspaces?.suspended, log);
  }

  /** Accepts no new runs. Running ones finish within the limit or are cancelled, with a result; then sessions end. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const poolClosed = this.#pool.close();
    this.#sessions.leave();
    const interrupted = this.#sessions.interrupt();
    const running = [...this.#runs.values()];
    const timer = setTimeout(() => {
      for (const run of running) run.cancel(new RunCancelled("The runner is shutting down."));
    }, graceMs);
    await Promise.all(running.map((run) => run.ended));
    clearTimeout(timer);
    await poolClosed;
    await interrupted;
    await this.#sessions.close();
    await this.#argumentsChecker.close();
    const { sandboxes } = this.registry.knownCandidates();
    const actors = [...sandboxes.map(({ actor }) => actor), ...this.registry.observers];
    await closeActors(actors, this.options);
  }

  /** The current state, for the figures of an observer. */
  state(): RunnerState {
    const now = Date.now();
    const probes = this.registry.evidence().map(({ kind, name, probedAt, findings }) => ({
      kind,
      findings,
      actor: name,
      ageMs: now - Date.parse(probedAt),
    }));
    const { open } = this.#sessions;
    const ahead = this.#pool.state;
    const processes = open.processes + ahead.processes;
    return { runs: this.#runs.size, ...open, processes, prewarmed: ahead.agents, probes };
  }

  #refuseWhileDraining(): void {
    if (this.#draining) throw new AtCapacity("The runner is shutting down.");
  }

  /** @throws RequestInvalid for an id that another run has, or for two ids. */
  #requireNewId(inBody: string | undefined, { runId: inHeader, caller }: RunOptions): void {
    const refuse = (message: string) => {
      throw new RequestInvalid([{ path: "runId", message }]);
    };
    if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader)
      refuse("differs from the header Idempotency-Key: send one of the two");
    const id = inBody ?? inHeader;
    if (id !== undefined && this.#runs.has(runKey(id, caller?.project)))
      refuse("is the id of a run in progress: give each run its own id");
  }

  #run(key: string): Run {
    const run = this.#runs.get(key);
    if (run === undefined)
      throw new NotFound(`There is no run '${idOfRun(key)}' here: it has ended, or never started.`);
    return run;
  }

  #begin(admitted: AdmittedRun, options: RunOptions, free: () => void): Run {
    const container = composeRun(this.#container, admitted, options);
    const run = container.resolve(Run);
    run.admitted();
    this.#runs.set(run.key, run);
    this.#commands.begun(admitted, run);
    const reveal = container.resolve(tokens.services).hideSecrets(admitted.secrets);
    this.#memory.watch();
    void run.ended.then((failure) => {
      this.#runs.delete(run.key);
      reveal();
      if (this.#runs.size === 0) this.#memory.rest();
      void container.dispose();
      free();
      for (const actor of failure === undefined ? [] : actorsInDoubt(failure, run)) {
        this.registry.invalidate(actor);
        this.#pool.doubt(actor);
      }
      this.#pool.refill();
    });
    return run;
  }
}

/** What a person does there would be done to the host. Pure. */
function whyNoVisit({ sandbox, isInPlace }: Pick<Session, "sandbox" | "isInPlace">): string | undefined {
  if (sandbox.confinement !== "confined")
    return "is a session without a boundary, where a terminal would be one of the runner's host: begin it with a sandboxPermission";
  if (isInPlace)
    return "is a session whose workspace is a folder of the host, which changes in its runs alone: use a terminal of the host";
  return undefined;
}

/**
 * Keeps a copy of an idle session's workspace, home and conversation. Undefined if there is none of that name here.
 * @throws SessionInUse, SnapshotFailed, StoreFailed; the signal's reason
 */
async function takeSnapshot(
  sessions: Pick<Sessions, "using">,
  workspaces: WorkspaceService | undefined,
  { session, project }: SessionName,
  signal: AbortSignal,
): Promise<SnapshotInfo | undefined> {
  const snapshots = workspaces?.snapshots;
  if (snapshots?.isKept !== true)
    throw new SnapshotFailed(
      "Snapshots can't be kept here: add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins.",
    );
  const take = ({ asSource, state }: Session) =>
    snapshots.take({ ...asSource, session, project }, state, signal);
  return sessions.using(session, project, take, { user: "a copy of its files" });
}

export interface RunnerOptions extends AdmissionRules {
  readonly registry: Registry;
  readonly limits: RunLimits;
  /**
   * The key of the ids under which calls are announced that wait for a user: runners that share it resume each other's
   * conversations. Called when it is first needed; never rejects.
   */
  readonly interactionKey: () => Promise<KeyObject>;
  readonly log: Log;
  /** The share of memory that agents may be started ahead in, 0 to 1. Default: what the host or a control group has left. */
  readonly freeMemory?: () => number;
  /** Called with the credentials of each run and session. Default: the log isn't redacted. */
  readonly hideSecrets?: HideSecrets;
}

/** What a run does, from the ground up. Each run has one instance of each, in its own container. */
export const runClasses = [
  RunEvents,
  RunTools,
  CallPermissions,
  CallEvents,
  Ask,
  RunCalls,
  ModelCalls,
  AgentStarter,
  RunWorkspace,
  AgentTurn,
  Run,
];

/**
 * What all runs share: values, and classes that are resolved here. One that a run's container resolved first would be
 * disposed with that run.
 */
export function composeRunner(options: RunnerOptions): DependencyContainer {
  const { log, permissionCeiling, interactionKey, hideSecrets = () => () => {} } = options;
  const { observers } = options.registry;
  const limits = withShares(options);
  const { calls: atOnce, callsPerRun: perOwner, openCalls: waiting } = limits;
  const onClaim = (claim: PrewarmClaim) => notifyPrewarmed(observers, claim, log);
  // A separate container, so that two runners in one process share nothing.
  const root = global.createChildContainer();
  root.registerInstance(tokens.log, log);
  root.registerInstance(tokens.limits, limits);
  root.registerInstance(tokens.permissionCeiling, permissionCeiling);
  root.registerInstance(tokens.services, {
    workspaces: options.workspaces ?? noWorkspaces,
    previews: options.previews ?? noPreviews,
    credentialRefresh: options.credentialRefresh ?? noCredentialRefresh,
    hideSecrets,
    observers,
    interactionKey,
    wholeHistory: options.contract?.wholeHistory ?? false,
    hasTenants: options.hasTenants ?? false,
  });
  root.registerInstance(tokens.callSlots, new FairSlots({ atOnce, perOwner, waiting }));
  root.registerInstance(ArgumentsChecker, new ArgumentsChecker(limits.argumentsMs, log));
  root.registerInstance(RunnersLedger, new RunnersLedger());
  root.registerInstance(SessionSpending, new SessionSpending());
  root.registerInstance(AgentPool, new AgentPool({ limits, log, onClaim }));
  root.registerSingleton(Sessions);
  root.resolve(Sessions);
  for (const runClass of runClasses) {
    root.register<unknown>(runClass, { useClass: runClass }, { lifecycle: Lifecycle.ContainerScoped });
  }
  return root;
}

/** The limits, with a share for each tenant: none of several may keep all of the sessions. */
function withShares({ limits, hasTenants = false }: RunnerOptions): RunLimits {
  const { sessions, sessionsPerProject = hasTenants ? Math.ceil(sessions / 2) : undefined } = limits;
  return sessionsPerProject === undefined ? limits : { ...limits, sessionsPerProject };
}

/** A run's container: its values. `runClasses` are constructed from them when it resolves `Run`, and disposed with it. */
export function composeRun(
  root: DependencyContainer,
  admitted: AdmittedRun,
  { runId, keepsEvents, caller }: RunOptions,
): DependencyContainer {
  const { request } = admitted;
  const limits = root.resolve(tokens.limits);
  const id = request.runId ?? runId ?? randomUUID();
  const log = new RunLogger(root.resolve(tokens.log), id, request);
  const scope = new OwnedScope(log, limits.closeMs);
  const ceiling = strictestCeiling(root.resolve(tokens.permissionCeiling), caller?.permissionCeiling ?? []);
  const run = root.createChildContainer();
  // What it is to do, and for whom.
  run.registerInstance(tokens.run, { ...admitted, id, key: runKey(id, caller?.project), keepsEvents });
  run.registerInstance(tokens.permissionCeiling, ceiling);
  // How long it may act, and what it leaves behind.
  run.registerInstance(tokens.scope, scope);
  run.registerInstance(Deadlines, new Deadlines(scope, limits));
  run.registerInstance(RightToAct, new RightToAct());
  run.registerInstance(tokens.log, log);
  run.registerInstance(RunLogger, log);
  // What its calls have come to, and whether they wait for the user.
  run.registerInstance(Calls, new Calls(limits));
  run.registerInstance(ApprovedCalls, new ApprovedCalls());
  run.registerInstance(Pause, new Pause());
  return run;
}
