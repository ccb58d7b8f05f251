/** A session: its name and what is kept of it, the sandbox, and what outlives a run in it. */

import { createHash, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type AcceptedPlan,
  type AmbitError,
  callPlugin,
  inOffer,
  messageOf,
  offerTitle,
  offerUnderWay,
  ofOffer,
  originOf,
  outsideOffers,
  PluginBrokeContract,
  type PluginOffer,
  pluginReturns,
  requiredPathsOf,
  type SandboxFailed,
} from "@ambit/core";
import {
  type Command,
  type ConnectionDecision,
  type FetchHandler,
  type HiddenCredential,
  type Log,
  type PreparedAgent,
  type Process,
  type Sandbox,
  type Scope,
  type SessionUse,
  unlessAborted,
} from "@ambit/core/plugin";
import { z } from "zod";
import { type CountedDecision, DecisionTally } from "../events/run-events.js";
import { canonicalJson } from "../json-values.js";
import { OwnedScope, settlesWithin } from "../lifetime/scope.js";
import type { Preview, SandboxOfSession, SessionState } from "../operator.js";
import type { UserMessages } from "../parse/messages.js";
import type { StartedAgent } from "./publish.js";
import { type RefreshedFor, refresherOf, type SessionRefresh, SessionSecrets } from "./session-secrets.js";

/** A person's use of a session between two runs, such as a terminal. */
const visitSchema = z.strictObject({
  /** `the operator ("Ada")` */
  visitor: z.string(),
  /** Milliseconds since 1970. */
  begunAt: z.int(),
  endedAt: z.int(),
});
export type Visit = Readonly<z.output<typeof visitSchema>>;
const visitsSchema = z.array(visitSchema).readonly().optional();

/**
 * What another runner needs to continue a session whose sandbox, or its files, outlive this one. It holds credentials: what
 * the output of the sandbox and the agent is redacted of those of earlier runs too. Stored encrypted.
 */
export const sessionRecordSchema = z.strictObject({
  /** The session of the sandbox's spec. */
  id: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Key of the plan that the sandbox was opened for: it isn't used under another one. */
  fingerprint: z.string(),
  /** The backend's, for a sandbox that outlives its runner. */
  handover: z.string().optional(),
  /** The backend's, for files that outlive it. */
  remains: z.string().optional(),
  /** Whether its workspace wasn't filled yet. */
  isEmpty: z.boolean().default(false),
  conversation: z.strictObject({ harness: z.string(), id: z.string() }).optional(),
  userMessages: z.array(z.string()).readonly(),
  secrets: z.array(z.string()).readonly(),
  /** Those since its last run. Absent without any, for runners of an earlier version. */
  visits: visitsSchema,
});
export type SessionRecord = Readonly<z.output<typeof sessionRecordSchema>>;

/** Kept where a session's sandbox has ended, and its files are kept for the next runner. It holds no credential. */
export const suspendedSessionSchema = z.strictObject({
  /** The id of the kept files. */
  suspended: z.string(),
  /** The backend's name. */
  sandbox: z.string(),
  /** Key of the plan that its sandbox was opened for. */
  fingerprint: z.string(),
  hadVisibleCredentials: z.boolean(),
  visits: visitsSchema,
});
export type SuspendedSession = Readonly<z.output<typeof suspendedSessionSchema>>;

/** Kept where a session's files are lost, for the warning of the next run with its name. */
export const lostSessionSchema = z.strictObject({ lost: z.string() });
type LostSession = Readonly<z.output<typeof lostSessionSchema>>;

/** This runner's hold on a session. */
export interface SessionHolding {
  /** Increases with each runner that takes the session over. */
  readonly fence: number;
  /** The record of the last runner, unvalidated: any version may have written it. */
  readonly record?: unknown;
}

/** Keeps sessions beyond this process, for all runners that share conversations. */
export interface SessionKeeper {
  /** Undefined if the session isn't this runner's. */
  holding(name: SessionName): SessionHolding | undefined;
  /**
   * Stores the record if the session is still this runner's; returns whether it is. Undefined: nothing can be
   * continued.
   * @param when another runner may have it. Default: `idle`, while none of its runs is under way.
   */
  keep(
    name: SessionName,
    fence: number,
    record: SessionRecord | SuspendedSession | undefined,
    when?: "idle" | "owner_lost",
  ): Promise<boolean>;
  /** Stores its usage of models. @returns the usage over all runners. @throws StoreFailed */
  use(name: SessionName, use: SessionUse): Promise<SessionUse>;
  /** Called when its sandbox was closed here. @param lost for the next run of the name. Default: nothing was lost. */
  closed(name: SessionName, lost?: LostSession): Promise<void>;
  /** Called when its sandbox waits for another runner. */
  onClosed(name: SessionName): void;
}

/** A session as its project names it. */
export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

/** Undefined for the session of a single run. Sessions of two projects with the same id have different keys. */
export function keyOf(sessionId: string | undefined, project: string | undefined): string | undefined {
  if (sessionId === undefined || sessionId.trim() === "") return undefined;
  return JSON.stringify([project ?? null, sessionId]);
}

export function nameOf(key: string): SessionName {
  const [project, session]: [string | null, string] = JSON.parse(key);
  return { project: project ?? undefined, session };
}

/** Names that are remembered; beyond that, the oldest are forgotten. */
const maxNames = 10_000;

/** Why files of named sessions were lost, for the next run of each name: where nothing outlives this process. */
export class LostFiles {
  readonly #reasons = new Map<string, string>();

  /** @param key the session's. */
  add(key: string, reason: string): void {
    this.#reasons.delete(key);
    this.#reasons.set(key, reason);
    for (const oldest of this.#reasons.keys()) {
      if (this.#reasons.size <= maxNames) return;
      this.#reasons.delete(oldest);
    }
  }

  of(key: string): string | undefined {
    return this.#reasons.get(key);
  }

  delete(key: string): void {
    this.#reasons.delete(key);
  }
}

/** The warning of the next run with that name. Pure. */
export function lostWarning(reason: string): string {
  return `is a session that lost its files, because ${reason}: its workspace and its conversation are new`;
}

/** Reasons that don't come from a failure. */
export const lostBecause = {
  failed: ({ message }: Pick<Error, "message">) => `its sandbox failed: ${message}`,
  unused: (ms: number) => `no run used it for ${ms / 1_000} s (limits.sessionTtlMs)`,
  evicted: (key: string) =>
    nameOf(key).project === undefined
      ? "other sessions needed its place (limits.sessions)"
      : "other sessions of its project needed its place (limits.sessions, limits.sessionsPerProject)",
  notKept: "this server keeps no sessions between runs (limits.sessions is 0)",
  stopped: "its server stopped, and could not keep them",
  abandoned: "its server ended without closing it",
} as const;

/** A conversation that the agent stored in the session's home, for a later run to continue. */
interface Conversation {
  readonly harness: string;
  readonly id: string;
}

/** The origin of a session. */
interface SessionOrigin {
  /** Set where another runner may continue it. */
  readonly fence?: number;
  /** The record of the runner that had it before. */
  readonly record?: SessionRecord;
  /** Whether it is opened before a run asks for it: it belongs to nobody, and its network is closed. Default false. */
  readonly isAhead?: boolean;
  /** The layer that its sandbox begins with. Default: it is empty. */
  readonly layer?: string | undefined;
  /** What refreshes its credentials. Default: none of them is refreshed. */
  readonly refresh?: SessionRefresh;
}

/** A commit that a workspace has the files of. It isn't stored: another runner can't know what a lost run changed. */
export interface WorkspaceCommit {
  /** The repository and its folder in the workspace. */
  readonly repository: string;
  readonly commit: string;
}

/** Visits that the next run is told of; of more, the newest. */
const maxVisits = 20;

/** An agent that was started ahead in a session's sandbox. */
interface AgentAhead {
  readonly agent: PreparedAgent;
  /** Where the route to its model has the address that it was told. Undefined for one without a route. */
  readonly way: Pick<Sandbox, "expose"> | undefined;
}

/** The run that has a session. It is notified of what happens to the sandbox. */
export interface Borrower {
  /** The boundary allowed or refused a connection. @param count how often, between two runs. Default: once. */
  decided(decision: ConnectionDecision, count?: number): void;
  /** The sandbox can no longer enforce its boundary. */
  failed(failure: SandboxFailed): void;
  /** The session's secrets changed: the run's output is redacted of the new ones from now on. */
  hide(secrets: ReadonlySet<string>, forgotten: ReadonlySet<string>): void;
  /** The run, as platforms know it. */
  readonly asker: RefreshedFor;
}

/** Why a connection is none of the run that reports it. */
const betweenRuns = "between two runs";

/** What outlives a run: the sandbox with its workspace and home, and the agent's stored conversation. */
export class Session {
  conversation: Conversation | undefined;
  /** Why the last conversation was dropped, while no agent has begun another one. */
  dropped: string | undefined;
  /** The user's messages in that conversation. */
  userMessages: UserMessages = [];
  /** Kept warm between runs; closed with the session. */
  agent: StartedAgent | undefined;
  /** Its run starts with this agent, once. */
  ahead: AgentAhead | undefined;
  /** Whether no run has had it yet. */
  #isUnclaimed: boolean;
  /** Undefined between runs. */
  #borrower: Borrower | undefined;
  /**
   * The boundary's decisions while no run has the session: its processes may still connect, and the next run reports them.
   * Undefined until the end of the first run, except in a session that was opened ahead.
   */
  #between: DecisionTally | undefined;
  #failure: SandboxFailed | undefined;
  #sandbox: Sandbox | undefined;
  #backend = "";
  /** The plugin of that backend. */
  #plugin: string | undefined;
  #paths: ReadonlySet<string> = new Set();
  /** Whether no run has filled its workspace. */
  isEmpty: boolean;
  /** What its workspace is at, while no run changes it. Undefined where a run changed it without a commit. */
  commit: WorkspaceCommit | undefined;
  /** Whether commands in it may have been killed: in a turn that was cut off, or by a copy or another runner. */
  wasCutOff: boolean;
  /** The visits of persons since its last run. */
  visits: readonly Visit[];
  /** Ends what a person does in it now. Undefined while no person has it. */
  #visit: AbortController | undefined;
  readonly processes = new LiveProcesses();
  /** The previews of its ports. They are closed with the session. */
  readonly previews = new Map<number, Preview>();
  readonly secrets: SessionSecrets;
  /** The run that has it, or the session alone between runs. */
  #asker: RefreshedFor | undefined;
  #isLeft = false;
  #isClosed = false;
  /** The sandbox's name, the same for every runner that has the session. */
  readonly id: string;
  /** The fence of this runner's hold on it. Undefined: no other runner can have it. */
  readonly fence: number | undefined;
  /** The layer that its sandbox began with. */
  readonly layer: string | undefined;
  /** Why the files of an earlier session of this name were lost. Undefined: none were. */
  lost: string | undefined;
  /** Whether a credential of an earlier run could be read inside: its home may have a copy of it. */
  hadVisibleCredentials: boolean;
  /** Whether its workspace is a folder of the user's, where nothing may be written after a run has ended. */
  #isInPlace = false;

  private constructor(
    readonly scope: OwnedScope,
    readonly fingerprint: string,
    { fence, record, layer, isAhead = false }: SessionOrigin,
  ) {
    this.fence = fence;
    this.layer = layer;
    this.#isUnclaimed = isAhead;
    this.#between = isAhead ? new DecisionTally(betweenRuns) : undefined;
    this.isEmpty = record === undefined;
    this.wasCutOff = record !== undefined;
    this.id = record?.id ?? randomUUID();
    this.conversation = record?.conversation;
    this.userMessages = record?.userMessages ?? [];
    this.visits = record?.visits ?? [];
    this.secrets = new SessionSecrets(record?.secrets);
    // Not known of another runner's.
    this.hadVisibleCredentials = record !== undefined;
  }

  /** Set when the sandbox can no longer enforce its boundary: no other run may use it. */
  get failure(): SandboxFailed | undefined {
    return this.#failure;
  }

  /**
   * Assigns the session to a run, which is notified immediately of an earlier failure.
   * @returns ends the loan: the run hears nothing more of the session.
   */
  lend(borrower: Borrower): () => void {
    this.#isUnclaimed = false;
    this.#borrower = borrower;
    this.#asker = borrower.asker;
    for (const { decision, count } of this.#between?.take() ?? []) borrower.decided(decision, count);
    if (this.#failure !== undefined) borrower.failed(this.#failure);
    return () => {
      this.#borrower = undefined;
      const { sessionId } = borrower.asker;
      this.#asker = { sessionId, runId: undefined };
      this.#between ??= new DecisionTally(betweenRuns);
    };
  }

  /**
   * A person does something in its sandbox, which no one approves call by call. Once that has begun, the runner's knowledge of the
   * workspace is void, and commands in it may be killed.
   *
   * @param interrupt aborts when the sandbox can no longer enforce its boundary
   * @param act calls `begin` when the person can act
   */
  async visit<Result>(
    visitor: string,
    interrupt: AbortController,
    act: (begin: () => void) => Promise<Result>,
  ): Promise<Result> {
    let begunAt: number | undefined;
    this.#visit = interrupt;
    try {
      return await act(() => {
        begunAt ??= Date.now();
        this.commit = undefined;
        this.wasCutOff = true;
      });
    } finally {
      this.#visit = undefined;
      if (begunAt !== undefined)
        this.visits = [...this.visits, { visitor, begunAt, endedAt: Date.now() }].slice(-maxVisits);
    }
  }

  /** The connections that its processes tried to make before a run had it. */
  decidedUnclaimed(): readonly CountedDecision[] {
    return this.#between?.take() ?? [];
  }

  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) throw new Error("The session's sandbox isn't open.");
    return this.#sandbox;
  }

  /** What a copy of it needs besides its files. */
  get state(): SessionState {
    const { conversation, userMessages } = this;
    return { conversation, userMessages, secrets: [...this.secrets.all] };
  }

  get backend(): string {
    return this.#backend;
  }

  get plugin(): string | undefined {
    return this.#plugin;
  }

  /** The host's files that its sandbox shows to the agent. */
  get paths(): ReadonlySet<string> {
    return this.#paths;
  }

  /** Ends the agent and every other process. False if one is left. */
  async endProcesses(limitMs: number): Promise<boolean> {
    await this.agent?.scope.close();
    this.agent = undefined;
    this.ahead = undefined;
    return this.processes.end(limitMs);
  }

  get isInPlace(): boolean {
    return this.#isInPlace;
  }

  get asSource(): SandboxOfSession {
    return { sandbox: this.sandbox, backend: this.#backend };
  }

  /** Whether another runner can continue its sandbox while this one lives. */
  get isMovable(): boolean {
    return this.sandbox.handover !== undefined && this.#failure === undefined;
  }

  /** The record with which another runner can continue, at the latest when this one is lost; undefined if none can. */
  get record(): SessionRecord | undefined {
    const { id, fingerprint, conversation, userMessages, isEmpty, sandbox, visits } = this;
    const { handover, remains } = sandbox;
    if ((handover ?? remains) === undefined || this.#failure !== undefined) return undefined;
    return {
      id,
      sandbox: this.#backend,
      fingerprint,
      handover,
      remains,
      isEmpty,
      userMessages,
      secrets: [...this.secrets.all],
      conversation,
      ...(visits.length === 0 ? {} : { visits }),
    };
  }

  /**
   * Opens the sandbox, or leaves nothing behind; or takes over another runner's, which stays if that fails. Abandons the
   * opening when `during` aborts.
   */
  static async open(
    plan: AcceptedPlan,
    log: Log,
    closeMs: number,
    during: Scope["signal"],
    origin: SessionOrigin = {},
  ): Promise<Session> {
    const opening = new OwnedScope(log, closeMs, during);
    const session = new Session(opening, sessionFingerprintOf(plan), origin);
    session.#backend = plan.sandbox.actor.name;
    session.#plugin = originOf(plan.sandbox.actor)?.plugin;
    session.#isInPlace = plan.workspaceFolder !== undefined;
    const requiredPaths = requiredPathsOf(plan.harness.actor, plan.sandbox.actor);
    session.#paths = new Set(requiredPaths.map(({ path }) => path));
    // Deferred first, so that it runs after the sandbox has been closed.
    opening.defer(() => session.#logUnreported(log));
    try {
      const spec = {
        id: session.id,
        boundary: plan.boundary,
        upstreamProxy: plan.upstreamProxy,
        workspaceFolder: plan.workspaceFolder,
        required: plan.required.map(({ capability }) => capability),
        requiredPaths,
        onDecision: (decision: ConnectionDecision) =>
          outsideOffers(() =>
            session.#borrower === undefined
              ? session.#between?.add({ ...decision, reason: `${betweenRuns}: ${decision.reason}` })
              : session.#borrower.decided(decision),
          ),
        onFailure: (failure: SandboxFailed) => {
          session.#failure ??= failure;
          outsideOffers(() => session.#borrower?.failed(failure));
          session.#visit?.abort(failure);
        },
        isUnclaimed: () => session.#isUnclaimed,
        secrets: plan.hidden.length > 0 ? plan.hidden : undefined,
        refreshSecret: refresherOf(
          {
            id: session.id,
            hidden: plan.hidden,
            secrets: session.secrets,
            signal: opening.signal,
            asker: () => session.#asker,
            onChange: (forgotten) => session.#borrower?.hide(session.secrets.all, forgotten),
          },
          origin.refresh,
          log,
        ),
        fence: origin.fence,
        remains: origin.record?.remains,
        layer: origin.layer === undefined ? undefined : ({ use: "begin", name: origin.layer } as const),
        log,
      };
      const sandbox = await unlessAborted(during, async () => {
        const { actor } = plan.sandbox;
        const handover = origin.record?.handover;
        const isNew = handover === undefined || actor.takeover === undefined;
        const opened = await callPlugin(
          actor,
          isNew ? "open" : "takeOver",
          pluginReturns.sandbox,
          async () => {
            const sandbox =
              handover === undefined || actor.takeover === undefined
                ? await actor.open(spec, opening)
                : await actor.takeover.takeOver(spec, handover, opening);
            // Before it is looked at: what isn't a whole sandbox may be a container all the same.
            if (sandbox instanceof Object)
              opening.defer(() =>
                inOffer(actor, () => (session.#isLeft ? sandbox.leave?.() : undefined) ?? sandbox.close()),
              );
            return sandbox;
          },
        );
        return opened;
      });
      requireOpened(plan.sandbox.actor, sandbox, plan.required.length > 0, plan.hidden);
      if (spec.remains !== undefined && sandbox.remains === undefined)
        throw new PluginBrokeContract(`${offerTitle(plan.sandbox.actor)} ignored \`remains\`.`);
      opening.detach();
      session.#sandbox = session.processes.of(sandbox, plan.sandbox.actor);
      return session;
    } catch (error) {
      await opening.close();
      throw error;
    }
  }

  /** Whether its files stay for another runner. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Instead of `close`: its files stay for the next runner that has the session. */
  async leave(): Promise<void> {
    this.#isLeft = true;
    await this.close();
  }

  /** What its processes connected to after its last run is in no run's result. */
  #logUnreported(log: Log): void {
    const last = this.#between?.take() ?? [];
    if (last.length === 0) return;
    const connections = last.map(({ decision: { target, allowed }, count }) => ({ target, allowed, count }));
    log.info({ session: this.id, connections }, "a session made connections after its last run");
  }

  /** Whether its sandbox is closed, or is being closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.scope.close();
    this.secrets.reveal();
  }
}

/** A new session. Where its sandbox can't begin with the layer, it is empty, and what else is wrong shows there too. */
export async function openSession(
  ...[plan, log, closeMs, during, origin]: Required<Parameters<typeof Session.open>>
) {
  const { layer, ...rest } = origin;
  if (layer !== undefined) {
    try {
      return await Session.open(plan, log, closeMs, during, origin);
    } catch (error) {
      during.throwIfAborted();
      log.warn({ error: messageOf(error) }, "a sandbox couldn't begin with a layer");
    }
  }
  return await Session.open(plan, log, closeMs, during, rest);
}

/** Checks what a backend opened. @throws PluginBrokeContract */
export function requireOpened(
  backend: PluginOffer,
  { confinement, placeholders }: Sandbox,
  isRequired: boolean,
  secrets: readonly HiddenCredential[],
): void {
  if (isRequired && confinement !== "confined")
    throw new PluginBrokeContract(`${offerTitle(backend)} opened unconfined under a boundary.`);
  const exposed = secrets.find(({ name }) => placeholders?.[name] === undefined);
  if (exposed !== undefined)
    throw new PluginBrokeContract(`${offerTitle(backend)} provided no placeholder for ${exposed.name}.`);
}

/** Two runs may share a session only if they ask for the same sandbox and the same boundary. */
export function sessionFingerprintOf(plan: AcceptedPlan): string {
  const { boundary, required, sandbox, harness, hidden, workspaceFolder } = plan;
  return canonicalJson({
    boundary,
    workspaceFolder,
    required: required.map(({ capability }) => capability),
    sandbox: sandbox.actor.name,
    harness: harness.actor.id,
    // A sandbox keeps the keys that it was opened with, so new keys need a new one. A digest, since a session outlives
    // its request.
    hidden: createHash("sha256")
      .update(canonicalJson([...hidden]))
      .digest("base64url"),
  });
}

/** The live processes that were spawned in a sandbox, without their children. */
class LiveProcesses {
  readonly #live = new Set<Process>();
  /** Those that are being started. */
  readonly #starting = new Set<Promise<unknown>>();

  get count(): number {
    return this.#live.size;
  }

  /**
   * Wraps the sandbox so that its processes are known, and that what its methods start is its backend's, even if another
   * plugin calls them.
   */
  of(sandbox: Sandbox, backend: PluginOffer): Sandbox {
    const spawn = async (command: Command) => {
      const starting = inOffer(backend, () => sandbox.spawn(command));
      this.#starting.add(starting);
      try {
        const process = await starting;
        this.#live.add(process);
        const forget = () => this.#live.delete(process);
        process.exit.then(forget, forget);
        return process;
      } finally {
        this.#starting.delete(starting);
      }
    };
    const expose = (handler: FetchHandler) => {
      const owner = offerUnderWay();
      const within = <Result>(call: () => Result) =>
        owner === undefined ? outsideOffers(call) : inOffer(owner, call);
      return inOffer(backend, () => sandbox.expose((request) => within(() => handler(request))));
    };
    return ofOffer(backend, sandbox, { spawn, expose });
  }

  /** Ends all of them, with what they started. Never rejects. @returns whether none is left within that time */
  async end(limitMs: number): Promise<boolean> {
    const ended = async () => {
      await Promise.allSettled(this.#starting);
      await Promise.allSettled([...this.#live].map((process) => Promise.all([process.kill(), process.exit])));
    };
    return (await settlesWithin(ended(), limitMs)) && this.count === 0;
  }
}

/** `PATH` of a sandbox without an image. */
const usualPath = "/usr/local/bin:/usr/bin:/bin";

/**
 * Whether the next run may have a session's sandbox. It is unsound when it reported a failure, when its processes can't be
 * ended, or when nothing can be started in it any more; how the run ended doesn't matter otherwise. Never rejects.
 *
 * @param failure of the run that had it.
 * @returns why it is unsound; undefined for a sound one
 */
export async function whyUnsound(
  session: Session,
  failure: AmbitError | undefined,
  limitMs: number,
): Promise<string | undefined> {
  if (session.failure !== undefined) return lostBecause.failed(session.failure);
  if (session.isClosed) return "its server ended it";
  // The processes of a kept agent go on.
  if (session.agent === undefined && !(await session.processes.end(limitMs)))
    return "processes in its sandbox could not be ended";
  if (failure?.code !== "sandbox_failed") return undefined;
  return await whyNothingStarts(session, limitMs);
}

/** The failure may be of another sandbox, such as git's, or of one call. */
async function whyNothingStarts({ sandbox }: Session, limitMs: number): Promise<string | undefined> {
  const ending = new AbortController();
  const tried = async () => {
    const started = await sandbox.spawn({
      argv: ["true"],
      env: { PATH: sandbox.image?.searchPath ?? usualPath },
      role: "agent",
      signal: ending.signal,
    });
    await started.exit;
    return undefined;
  };
  const late = delay(limitMs, "nothing started in its sandbox in time", { signal: ending.signal });
  try {
    return await Promise.race([
      tried().catch((error: unknown) => `nothing can be started in its sandbox: ${messageOf(error)}`),
      late,
    ]);
  } finally {
    ending.abort();
    await late.catch(() => undefined);
  }
}
