import { messageOf } from "@ambit/core";
import type { Harness, Log, Prewarm, PrewarmClaim } from "@ambit/core/plugin";
import type { RunLimits } from "../../limits.js";
import type { Session } from "../session.js";
import { type AskedStart, PooledAgent } from "./pooled-agent.js";

/** What the pool needs of its runner. */
export interface PoolOwner {
  /** With what their deployer wants started ahead. */
  readonly harnesses: readonly Harness[];
  /** Plans the deployer's request. @throws RequestInvalid, BoundaryRefused */
  plan(harness: Harness, prewarm: Prewarm): Promise<AskedStart>;
  /** The number of further runs that could begin now. */
  room(): number;
  /** The share of the host's memory, or of what the process is limited to, that is available: 0 to 1. */
  freeMemory(): number;
}

export interface AgentPoolOptions {
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
  async claim(asked: AskedStart, signal: AbortSignal): Promise<Session | undefined> {
    const { actor: harness } = asked.plan.harness;
    const wanted = this.#wanted.filter((one) => one.harness === harness);
    if (wanted.length === 0) return undefined;
    for (const one of wanted) one.asked();
    const outcome = (known: PrewarmClaim["outcome"]) =>
      this.#options.onClaim({ harness: harness.id, outcome: known });
    try {
      for (let taken = this.#take(asked); taken !== undefined; taken = this.#take(asked)) {
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
    for (const one of this.#waiting.filter(({ agent }) => agent.uses(actor))) void this.#drop(one);
  }

  /** Ends all that wait or are being started, and starts no more. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the runner is shutting down"));
    clearTimeout(this.#timer);
    await this.#filling;
    for (const one of this.#waiting) void this.#drop(one);
    await Promise.all(this.#closes);
  }

  /** Takes the first that fits out of the pool, at once: no other run can have it any more. */
  #take(asked: AskedStart): Waiting | undefined {
    for (const one of this.#waiting.filter(({ agent }) => agent.isOutdated)) void this.#drop(one);
    const misfits = new Set<string>();
    const found = this.#waiting.find(({ agent }) => {
      const why = agent.misfit(asked);
      if (why !== undefined) misfits.add(why);
      return why === undefined;
    });
    if (found !== undefined) this.#remove(found);
    else {
      const harness = asked.plan.harness.actor.id;
      this.#options.log.debug(
        { harness, misfits: [...misfits] },
        "no agent that was started ahead fits a run",
      );
    }
    return found;
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
      const asked = await owner.plan(harness, prewarm);
      const signal = AbortSignal.any([closing, AbortSignal.timeout(limits.startMs)]);
      const agent = await PooledAgent.make({ asked, log, closeMs: limits.closeMs, signal });
      if (closing.aborted) return void (await agent.close());
      wanted.started();
      this.#add(wanted, agent);
    } catch (error) {
      if (closing.aborted) return;
      // What refuses it now refuses those that wait, too.
      for (const one of this.#waiting.filter((other) => other.wanted === wanted)) void this.#drop(one);
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

  /** Milliseconds until another agent may be started; infinite while nobody asks for one. */
  waitMs(now: number): number {
    return this.#isIdle ? Number.POSITIVE_INFINITY : Math.max(0, this.#retryAt - now);
  }

  /** Nobody asked for its agents: none is started until a run asks. */
  rest(): void {
    this.#isIdle = true;
  }

  asked(): void {
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
