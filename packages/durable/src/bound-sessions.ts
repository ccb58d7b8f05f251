import { messageOf, SessionElsewhere } from "@ambit/core";
import { projectOf } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { retryWhileDown } from "./outage.js";
import type { RecordedRun } from "./recorder.js";
import type { Sealing } from "./sealing.js";
import type { StoreSettings } from "./settings.js";
import type { SessionUse, Store, StoredRun, StoredSessionName, TakeoverTime } from "./store.js";

interface BoundSessionsOptions {
  readonly store: Store;
  /** The store for requests of callers, which responds in time or rejects with StoreFailed. */
  readonly answeringStore: Store;
  /** False: the store is in memory, and the runner doesn't say which sessions it has closed. */
  readonly isShared: boolean;
  readonly settings: StoreSettings;
  /** The named sessions that are open here. */
  readonly openSessions: () => readonly StoredSessionName[];
  /** @throws StoreFailed while this replica may not act. */
  readonly requireLease: () => Promise<void>;
  readonly sealing: Sealing;
  readonly log: Log;
}

/** This replica's record of a session. */
interface Holding {
  /** Increases with each replica that takes the session over. */
  readonly fence: number;
  /** Data that the last replica stored for the next one. */
  readonly record?: unknown;
}

interface Bound extends StoredSessionName, Holding {
  readonly boundAt: number;
}

/** Milliseconds from binding a session to its opening, at most. */
const openingMs = 5_000;

/** The sessions of this replica, which no other one can open meanwhile. */
export class BoundSessions {
  readonly #bound = new Map<string, Bound>();

  constructor(
    readonly options: BoundSessionsOptions,
    readonly replica: string,
  ) {}

  /**
   * Binds a run's session to this replica, if its project may have one more open: no two requests take the last place.
   * @param maxOpen of its project. Default: no limit. @throws SessionElsewhere when another one has it; StoreFailed
   */
  async bind({ request, plan }: RecordedRun, maxOpen?: number): Promise<"bound" | "over_quota"> {
    const sandbox = plan.sandbox.actor.name;
    return this.bindNamed({ project: projectOf(request), session: request.sessionId, sandbox }, maxOpen);
  }

  /** Binds a session before its run is admitted. */
  async bindNamed(
    { project, session, sandbox }: Pick<StoredRun, "project" | "session" | "sandbox">,
    maxOpen?: number,
  ): Promise<"bound" | "over_quota"> {
    if (session === undefined) return "bound";
    await this.options.requireLease();
    const { settings, log, store, isShared } = this.options;
    // They must not count as open.
    if (!isShared) await this.releaseClosed();
    const name = { project, session };
    const key = keyOf(name);
    const place = { ...name, replica: this.replica, sandbox };
    const before = this.#bound.get(key);
    // Must not be released meanwhile.
    this.#bound.set(key, { ...name, fence: 0, ...before, boundAt: performance.now() });
    const hold = await retryWhileDown("bind a session", settings.retryTimeoutMs, log, () =>
      store.holdSession(place, maxOpen),
    );
    if (hold === "over_quota") {
      this.#bound.delete(key);
      return hold;
    }
    if (!hold.held) {
      this.#bound.delete(key);
      throw new SessionElsewhere(session, hold.address);
    }
    const { fence, handover } = hold;
    let record = handover === undefined ? undefined : this.#unsealed(key, handover);
    if (hold.isAbandoned === true) {
      record = { lost: "its server ended without closing it" };
      // Another request of this session may find it before its next run has said so.
      await this.keep(name, fence, record);
    }
    this.#bound.set(key, { ...name, fence, record, boundAt: performance.now() });
    return "bound";
  }

  /** This replica's record of a session. Undefined for a session that isn't bound. */
  holding(name: StoredSessionName): Holding | undefined {
    return this.#bound.get(keyOf(name));
  }

  /** False if another replica has it. @param when another one may have it. Default: `idle`. @throws StoreFailed */
  async keep(name: StoredSessionName, fence: number, record: unknown, when?: TakeoverTime): Promise<boolean> {
    const { settings, log, store, sealing } = this.options;
    const sealed = record === undefined ? undefined : sealing.seal(sealingName(keyOf(name)), record);
    const place = { ...name, replica: this.replica, sandbox: "" };
    const written = await retryWhileDown("keep a session", settings.retryTimeoutMs, log, () =>
      store.keepSession(place, fence, sealed, when),
    );
    const bound = this.#bound.get(keyOf(name));
    if (written === "written" && bound?.fence === fence) this.#bound.set(keyOf(name), { ...bound, record });
    return written === "written";
  }

  /** @throws StoreFailed */
  use(name: StoredSessionName, use: SessionUse): Promise<SessionUse> {
    const { settings, log, store } = this.options;
    return retryWhileDown("keep what a session used", settings.retryTimeoutMs, log, () =>
      store.keepUse(name, use),
    );
  }

  /** Offers it to other replicas. This replica keeps it until another one takes it, or the lease ends. */
  onClosed(name: StoredSessionName): void {
    this.#bound.delete(keyOf(name));
  }

  #unsealed(key: string, sealed: string): unknown {
    try {
      return this.options.sealing.unseal(sealingName(key), sealed);
    } catch (error) {
      const fix = "give all replicas the same interactions.keyFile";
      this.options.log.warn({ error: messageOf(error) }, `a session was sealed with another key: ${fix}`);
      return { lost: "its server kept it with another key (interactions.keyFile)" };
    }
  }

  /** The address of another living replica that has a session; undefined if none has it. @throws StoreFailed */
  async addressOf(session: string, project: string | undefined): Promise<string | undefined> {
    const sessions = await this.options.answeringStore.sessions({ project: project ?? null, limit: 10_000 });
    return sessions.find((open) => open.session === session && open.replica !== this.replica)?.address;
  }

  /** Ends a session whose replica is lost. Undefined if there is none. @throws StoreFailed */
  async endAbandoned(name: StoredSessionName): Promise<Holding | undefined> {
    const ended = await this.options.answeringStore.endSession(name);
    if (ended === undefined) return undefined;
    const { fence, handover } = ended;
    return { fence, ...(handover === undefined ? {} : { record: this.#unsealed(keyOf(name), handover) }) };
  }

  /** A session of this replica was closed. @param left for the next owner. Default: nothing. */
  async closed({ project, session }: StoredSessionName, left?: unknown): Promise<void> {
    const name = { project, session };
    const key = keyOf(name);
    this.#bound.delete(key);
    const sealed = left === undefined ? undefined : this.options.sealing.seal(sealingName(key), left);
    await this.options.store.releaseSession({ ...name, replica: this.replica, sandbox: "" }, sealed);
  }

  /**
   * Releases sessions that are closed. One that was just bound may not be open yet, and one that wasn't opened keeps what its
   * last owner left.
   */
  async releaseClosed(): Promise<void> {
    const open = new Set(this.options.openSessions().map(keyOf));
    for (const [key, bound] of this.#bound) {
      if (open.has(key) || performance.now() - bound.boundAt < openingMs) continue;
      await this.closed(bound, bound.record).catch(() => this.#bound.set(key, bound));
    }
  }
}

const sealingName = (key: string) => `session ${key}`;
export const keyOf = ({ project, session }: StoredSessionName) => JSON.stringify([project ?? null, session]);
