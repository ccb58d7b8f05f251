/** Agents that are started before a run asks for them. */

import {
  type AcceptedPlan,
  callPlugin,
  messageOf,
  pluginReturns,
  requiredPathsOf,
  SandboxFailed,
} from "@ambit/core";
import {
  type Exposure,
  type FetchHandler,
  type Harness,
  type Log,
  type ModelRoute,
  type PreparedAgent,
  type PreparedStart,
  type Prewarm,
  type PrewarmClaim,
  type Sandbox,
  type SandboxContents,
  unlessAborted,
} from "@ambit/core/plugin";
import type { CountedDecision } from "../events/run-events.js";
import { canonicalJson } from "../json-values.js";
import { OwnedScope } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { ModelRouter, openModelRoute } from "./publish.js";
import { Session, sessionFingerprintOf } from "./session.js";

/** What the pool needs of its runner. */
interface PoolOwner {
  /** The loaded harnesses. Each says what its deployer wants started ahead. */
  readonly harnesses: readonly Harness[];
  /** Plans the deployer's request. @throws RequestInvalid, BoundaryRefused */
  plan(harness: Harness, prewarm: Prewarm): Promise<AskedStart>;
  /** The number of further runs that could begin now. */
  room(): number;
  /** The share of the host's memory, or of what the process is limited to, that is available: 0 to 1. */
  freeMemory(): number;
}

interface AgentPoolOptions {
  readonly limits: Pick<RunLimits, "startMs" | "closeMs">;
  readonly log: Log;
  /** Called for each run of a harness that has agents started ahead. */
  onClaim(claim: PrewarmClaim): void;
}

interface Waiting {
  readonly wanted: Wanted;
  readonly agent: PooledAgent;
  readonly expiry: NodeJS.Timeout;
}

/** Milliseconds between a run's claim and the start of the next agent, so that it doesn't slow the run. */
const delayMs = 200;
/** Share of the memory below which no agent is started ahead: what is left is for runs. */
const minFreeMemory = 0.1;
/** Milliseconds until memory is looked at again. */
const memoryRetryMs = 30_000;
/** The longest delay of a timer. */
const maxDelayMs = 300_000;

/**
 * Agents that are started before anyone asks for them, each in a sandbox of its own and for one run. The deployer says
 * which: nothing is learned from runs, so no caller influences what waits for another. (A backend's `WarmPool` learns,
 * but only shapes that hold nothing of a caller.) Runs have precedence.
 */
export class AgentPool {
  readonly #options: AgentPoolOptions;
  #owner: PoolOwner | undefined;
  #wanted: readonly Wanted[] = [];
  #waiting: readonly Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();
  readonly #closes = new Set<Promise<void>>();

  constructor(options: AgentPoolOptions) {
    this.#options = options;
  }

  /** From now on, agents are started. */
  open(owner: PoolOwner): void {
    if (this.#owner !== undefined || this.#closing.signal.aborted) return;
    this.#owner = owner;
    this.#wanted = owner.harnesses.flatMap((harness) =>
      (harness.prewarm ?? []).map((prewarm) => new Wanted(harness, prewarm)),
    );
    this.#fillIn(0);
  }

  /** The agents that wait, and the processes in their sandboxes. */
  get state(): { readonly agents: number; readonly processes: number } {
    const processes = this.#waiting.reduce((sum, { agent }) => sum + agent.processes, 0);
    return { agents: this.#waiting.length, processes };
  }

  /**
   * The session of an agent that was started ahead exactly as this run's would be, with nothing done since. From now on
   * it is the run's. Undefined if there is none.
   *
   * @throws the signal's reason
   */
  async claim(start: AskedStart, signal: AbortSignal): Promise<Session | undefined> {
    const { actor: harness } = start.plan.harness;
    const wanted = this.#wanted.filter((entry) => entry.harness === harness);
    if (wanted.length === 0) return undefined;
    for (const entry of wanted) entry.wake();
    const outcome = (result: PrewarmClaim["outcome"]) =>
      this.#options.onClaim({ harness: harness.id, outcome: result });
    try {
      for (let taken = this.#take(start); taken !== undefined; taken = this.#take(start)) {
        const session = await this.#judged(taken, signal);
        outcome(session === undefined ? "refused" : "hit");
        if (session !== undefined) return session;
      }
      outcome("miss");
      await this.#makeRoom();
      return undefined;
    } finally {
      this.#fillIn(delayMs);
    }
  }

  /** A run has ended: there may be room again. */
  refill(): void {
    if (this.#wanted.length > 0 && this.#timer === undefined) this.#fillIn(delayMs);
  }

  /** This actor failed although it was proven: what was started with it is ended. */
  doubt(actor: object): void {
    for (const waiting of this.#waiting.filter(({ agent }) => agent.uses(actor))) void this.#drop(waiting);
  }

  /** Ends all that wait or are being started, and starts no more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the runner is shutting down"));
    clearTimeout(this.#timer);
    await this.#filling;
    for (const waiting of this.#waiting) void this.#drop(waiting);
    await Promise.all(this.#closes);
  }

  /** Takes the first that fits out of the pool, at once: no other run can have it any more. */
  #take(start: AskedStart): Waiting | undefined {
    for (const waiting of this.#waiting.filter(({ agent }) => agent.isOutdated)) void this.#drop(waiting);
    const misfits = new Set<string>();
    const fitting = this.#waiting.find(({ agent }) => {
      const why = agent.misfit(start);
      if (why !== undefined) misfits.add(why);
      return why === undefined;
    });
    if (fitting !== undefined) this.#remove(fitting);
    else {
      const harness = start.plan.harness.actor.id;
      this.#options.log.debug(
        { harness, misfits: [...misfits] },
        "no agent that was started ahead fits a run",
      );
    }
    return fitting;
  }

  /** Its session, if it is as it was started; else it is ended. */
  async #judged(taken: Waiting, signal: AbortSignal): Promise<Session | undefined> {
    const { agent, wanted } = taken;
    try {
      const fault = await agent.fault(signal);
      if (fault === undefined) return agent.handOver();
      wanted.failed(Date.now());
      const fields = { harness: wanted.harness.id, fault };
      this.#options.log.warn(fields, "an agent that was started ahead is refused: the run starts a new one");
    } catch (error) {
      void this.#close(agent);
      throw error;
    }
    void this.#close(agent);
    return undefined;
  }

  /** Ends the oldest of those that a run's place is needed for. */
  async #makeRoom(): Promise<void> {
    const surplus = this.#waiting.length - Math.max(0, this.#owner?.room() ?? 0);
    await Promise.all(this.#waiting.slice(0, Math.max(0, surplus)).map((one) => this.#drop(one)));
  }

  #fillIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#closing.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#filling ??= this.#fill().finally(() => {
        this.#filling = undefined;
      });
    }, milliseconds);
    this.#timer.unref();
  }

  /** One after the other, so that runs in progress lose little to it. */
  async #fill(): Promise<void> {
    const owner = this.#owner;
    const closing = this.#closing.signal;
    if (owner === undefined) return;
    for (let next = this.#missing(); next !== undefined && !closing.aborted; next = this.#missing()) {
      if (this.#waiting.length >= owner.room()) return;
      if (owner.freeMemory() < minFreeMemory) return this.#waitForMemory();
      await this.#start(owner, next);
    }
    const waits = this.#wanted.filter((one) => this.#lacks(one)).map((one) => one.waitMs(Date.now()));
    const soonest = Math.min(...waits);
    if (soonest <= maxDelayMs && this.#timer === undefined) this.#fillIn(soonest);
  }

  /** The oldest one gives its memory back, and the others are looked at again later. */
  #waitForMemory(): void {
    const [oldest] = this.#waiting;
    if (oldest !== undefined) void this.#drop(oldest);
    this.#options.log.warn({ minFreeMemory }, "no agent is started ahead: the host is short of memory");
    this.#fillIn(memoryRetryMs);
  }

  async #start(owner: PoolOwner, wanted: Wanted): Promise<void> {
    const { harness, prewarm } = wanted;
    const { log, limits } = this.#options;
    const closing = this.#closing.signal;
    try {
      const start = await owner.plan(harness, prewarm);
      const signal = AbortSignal.any([closing, AbortSignal.timeout(limits.startMs)]);
      const agent = await PooledAgent.make({ wanted: start, log, closeMs: limits.closeMs, signal });
      if (closing.aborted) return void (await agent.close());
      wanted.started();
      this.#add(wanted, agent);
    } catch (error) {
      if (closing.aborted) return;
      // What refuses it now refuses those that wait, too.
      for (const waiting of this.#waiting.filter((other) => other.wanted === wanted))
        void this.#drop(waiting);
      wanted.failed(Date.now());
      log.warn({ harness: harness.id, error }, `an agent couldn't be started ahead: ${messageOf(error)}`);
    }
  }

  #add(wanted: Wanted, agent: PooledAgent): void {
    const expire = () => {
      wanted.rest();
      void this.#drop(added);
    };
    const added: Waiting = { wanted, agent, expiry: setTimeout(expire, wanted.prewarm.idleMs).unref() };
    this.#waiting = [...this.#waiting, added];
    void agent.ended.then(() => {
      if (!this.#waiting.includes(added)) return;
      wanted.failed(Date.now());
      this.#options.log.warn({ harness: wanted.harness.id }, "an agent that was started ahead has ended");
      void this.#drop(added);
      this.#fillIn(delayMs);
    });
  }

  /** One of which fewer wait than its deployer wants, and that may be started now. */
  #missing(): Wanted | undefined {
    return this.#wanted.find((one) => this.#lacks(one) && one.waitMs(Date.now()) === 0);
  }

  #lacks(wanted: Wanted): boolean {
    return this.#waiting.filter((one) => one.wanted === wanted).length < wanted.prewarm.agents;
  }

  #remove(one: Waiting): void {
    clearTimeout(one.expiry);
    this.#waiting = this.#waiting.filter((other) => other !== one);
  }

  #drop(one: Waiting): Promise<void> {
    this.#remove(one);
    return this.#close(one.agent);
  }

  /** Never rejects: a scope logs what it can't close. */
  #close(agent: PooledAgent): Promise<void> {
    const closed = agent.close().finally(() => this.#closes.delete(closed));
    this.#closes.add(closed);
    return closed;
  }
}

/** Milliseconds until the next attempt after a failed one; doubled after each. */
const retryMs = { first: 1_000, last: 300_000 };

/** One entry of a deployer's `prewarm`, and what has come of it. */
class Wanted {
  /** Failed attempts in a row. */
  #failures = 0;
  /** Milliseconds since 1970. */
  #retryAt = 0;
  #isIdle = false;

  constructor(
    readonly harness: Harness,
    readonly prewarm: Prewarm,
  ) {}

  /** Milliseconds until another agent may be started; infinite while no run asks for one. */
  waitMs(now: number): number {
    return this.#isIdle ? Number.POSITIVE_INFINITY : Math.max(0, this.#retryAt - now);
  }

  /** No run has asked for its agents: none is started until one does. */
  rest(): void {
    this.#isIdle = true;
  }

  /** A run asks for one: agents are started again. */
  wake(): void {
    this.#isIdle = false;
  }

  started(): void {
    this.#failures = 0;
  }

  /** One couldn't be started, or a run may not have it. */
  failed(now: number): void {
    this.#retryAt = now + Math.min(retryMs.first * 2 ** this.#failures, retryMs.last);
    this.#failures += 1;
  }
}

/** The start that a run asks for. */
export interface AskedStart extends Omit<PreparedStart, "model"> {
  readonly plan: AcceptedPlan;
}

interface MakeOptions {
  /** The start that its deployer wants. Nothing of a caller is in it. */
  readonly wanted: AskedStart;
  readonly log: Log;
  readonly closeMs: number;
  readonly signal: AbortSignal;
}

/** Milliseconds that a sandbox has to show what is in it. */
const showMs = 5_000;

/** An agent in a sandbox of its own, started before any run asks for it. One run gets both, once. */
class PooledAgent {
  readonly #session: Session;
  readonly #plan: AcceptedPlan;
  readonly #agent: PreparedAgent;
  readonly #log: Log;
  readonly #way: ReservedExposure | undefined;
  readonly #route: ModelRoute | undefined;
  #hasEnded = false;

  private constructor(
    session: Session,
    plan: AcceptedPlan,
    agent: PreparedAgent,
    model: { readonly way: ReservedExposure | undefined; readonly route: ModelRoute | undefined },
    log: Log,
  ) {
    this.#session = session;
    this.#plan = plan;
    this.#agent = agent;
    this.#log = log;
    this.#way = model.way;
    this.#route = model.route;
    void agent.ended.then(() => {
      this.#hasEnded = true;
    });
  }

  /** Opens the sandbox and starts the agent, or leaves nothing behind. */
  static async make({ wanted, log, closeMs, signal }: MakeOptions): Promise<PooledAgent> {
    const { plan, ...start } = wanted;
    const session = await Session.open(plan, log, closeMs, signal, { isAhead: true });
    try {
      const { sandbox } = session;
      const { actor: harness } = plan.harness;
      if (sandbox.contents === undefined || harness.prepare === undefined)
        throw new SandboxFailed(
          `Sandbox '${plan.sandbox.actor.name}' doesn't show what is in it, so no agent can be started in it ahead of a run: use local or docker, or remove the agent's prewarm`,
        );
      const way = plan.gateway === undefined ? undefined : await ReservedExposure.on(sandbox);
      const route = way && (await addressOf(plan, way, log, closeMs));
      const agent = await unlessAborted(signal, () =>
        callPlugin(
          harness,
          "prepare",
          pluginReturns.preparedAgent,
          async () =>
            await harness.prepare?.({ ...start, model: route, signal: session.scope.signal, sandbox, log }),
        ),
      );
      return new PooledAgent(session, plan, agent, { way, route }, log);
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Settles when its process has ended. */
  get ended(): Promise<void> {
    return this.#agent.ended;
  }

  get processes(): number {
    return this.#session.processes.count;
  }

  /** Whether no run can have it, since its program was replaced. */
  get isOutdated(): boolean {
    return this.#agent.isOutdated?.() === true;
  }

  /** Whether this actor is part of it. */
  uses(actor: object): boolean {
    const { sandbox, harness, gateway } = this.#plan;
    const parts: readonly (object | undefined)[] = [sandbox.actor, harness.actor, gateway?.probed.actor];
    return parts.includes(actor);
  }

  /** Why such a run can't have it; undefined if it can. Pure. */
  misfit({ plan, ...start }: AskedStart): string | undefined {
    const pooled = this.#plan;
    if (sessionFingerprintOf(plan) !== sessionFingerprintOf(pooled))
      return "its sandbox has another boundary, or hides other credentials";
    if (pathsOf(plan) !== pathsOf(pooled)) return "its program is another one";
    if (routeOf(plan) !== routeOf(pooled)) return "its model is reached in another way";
    return this.#agent.misfit({ ...start, model: this.#route });
  }

  /**
   * Why no run may have it: what it has done since its start; undefined if it is as it was started.
   *
   * @throws the signal's reason
   */
  async fault(signal: AbortSignal): Promise<string | undefined> {
    const { sandbox } = this.#session;
    const limit = AbortSignal.timeout(showMs);
    try {
      const contents = await unlessAborted(
        AbortSignal.any([signal, limit]),
        async () => await sandbox.contents?.(),
      );
      if (contents === undefined) return "its sandbox doesn't show what is in it";
      return faultOf(this.#agent, {
        hasEnded: this.#hasEnded,
        hasFailed: this.#session.failure !== undefined,
        decided: this.#session.decidedUnclaimed(),
        askedModel: this.#way?.wasAsked === true,
        contents,
        workspace: sandbox.workspace,
      });
    } catch (error) {
      signal.throwIfAborted();
      this.#log.debug({ error }, "a sandbox with an agent that was started ahead can't be looked at");
      return limit.aborted
        ? `its sandbox didn't show what is in it within ${showMs / 1_000} s`
        : "its sandbox couldn't show what is in it";
    }
  }

  /** Gives it to a run. */
  handOver(): Session {
    this.#session.ahead = { agent: this.#agent, way: this.#way?.open };
    return this.#session;
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

/** The address that the agent gets of the route to its model, which stays closed: it is opened again for the run. */
async function addressOf(
  plan: AcceptedPlan,
  way: ReservedExposure,
  log: Log,
  closeMs: number,
): Promise<ModelRoute | undefined> {
  await using scope = new OwnedScope(log, closeMs);
  return await openModelRoute(plan, log, way.closed, scope, new ModelRouter());
}

function pathsOf(plan: AcceptedPlan): string {
  return canonicalJson([...requiredPathsOf(plan.harness.actor, plan.sandbox.actor)]);
}

/** What the address of a model route depends on. Its endpoint and credentials stay outside. */
function routeOf({ gateway }: AcceptedPlan): string {
  if (gateway === undefined) return "";
  const { protocol, basePath } = gateway.use;
  return canonicalJson({ gateway: gateway.probed.actor.name, protocol, basePath });
}

/** What was observed of an agent between its start and the run that asks for it. */
interface Observed {
  readonly hasEnded: boolean;
  readonly hasFailed: boolean;
  /** Connections that it tried to make. */
  readonly decided: readonly CountedDecision[];
  readonly askedModel: boolean;
  readonly contents: SandboxContents;
  readonly workspace: string;
}

/** Why a run may not have the agent; undefined if it is as it was started. Pure. */
function faultOf(agent: Pick<PreparedAgent, "fault">, observed: Observed): string | undefined {
  const { hasEnded, hasFailed, decided, askedModel, contents, workspace } = observed;
  if (hasEnded) return "it has ended";
  if (hasFailed) return "its sandbox has failed";
  const [connection] = decided;
  if (connection !== undefined) return `it tried to connect to ${connection.decision.target}`;
  if (askedModel) return "it sent a request to its model";
  const written = contents.files.find((path) => path.startsWith(`${workspace}/`));
  if (written !== undefined) return `it wrote ${written} in its workspace`;
  return agent.fault(contents);
}

/** The part of a sandbox that a route to the model needs. */
type WayIn = Pick<Sandbox, "expose">;

/**
 * An exposure whose address and token are known before its handler: an agent that is started ahead gets them with its
 * environment. Requests before a run has it are refused.
 */
class ReservedExposure {
  readonly #exposure: Exposure;
  readonly #answer: { handler: FetchHandler };
  /** Requests that came before a run had it. */
  readonly #early: { count: number };

  private constructor(exposure: Exposure, answer: { handler: FetchHandler }, early: { count: number }) {
    this.#exposure = exposure;
    this.#answer = answer;
    this.#early = early;
  }

  static async on(sandbox: WayIn): Promise<ReservedExposure> {
    const early = { count: 0 };
    const closed = () => {
      early.count += 1;
      return new Response(null, { status: 503 });
    };
    const answer: { handler: FetchHandler } = { handler: closed };
    const exposure = await sandbox.expose((request) => answer.handler(request));
    return new ReservedExposure(exposure, answer, early);
  }

  /** Whether something inside sent a request before a run had it. */
  get wasAsked(): boolean {
    return this.#early.count > 0;
  }

  /** Tells its address, and keeps it closed whatever is exposed. */
  get closed(): WayIn {
    const { url, token } = this.#exposure;
    return { expose: async () => ({ url, token, close: async () => undefined }) };
  }

  /** For the run that gets it: what is exposed has its address. For one handler. */
  get open(): WayIn {
    return {
      expose: async (handler) => {
        this.#answer.handler = handler;
        return this.#exposure;
      },
    };
  }
}
