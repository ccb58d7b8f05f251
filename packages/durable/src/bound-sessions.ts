import { SessionElsewhere } from "@ambit/core";
import { projectOf } from "@ambit/core/contract";
import type { Log, Store } from "@ambit/core/plugin";
import { patiently } from "./outage.js";
import type { RecordedRun } from "./recorded-run.js";
import type { StoreSettings } from "./settings.js";

export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

export interface BoundSessionsOptions {
  readonly store: Store;
  readonly settings: StoreSettings;
  /** The named sessions that are open here. */
  readonly openSessions: () => readonly SessionName[];
  readonly log: Log;
}

/** Milliseconds from binding a session to its opening, at most. */
const openingMs = 5_000;

/** The sessions of this replica, which no other one opens meanwhile. */
export class BoundSessions {
  readonly #bound = new Map<string, SessionName & { readonly boundAt: number }>();

  constructor(
    readonly options: BoundSessionsOptions,
    readonly replica: string,
  ) {}

  /** Binds a run's session to this replica. @throws SessionElsewhere when another one has it; StoreFailed */
  async bind({ request, plan }: RecordedRun): Promise<void> {
    const { sessionId: session } = request;
    if (session === undefined) return;
    const { settings, log, store } = this.options;
    const name = { project: projectOf(request), session };
    const key = keyOf(name);
    const place = { ...name, replica: this.replica, sandbox: plan.sandbox.actor.name };
    this.#bound.set(key, { ...name, boundAt: performance.now() });
    const hold = await patiently("bind a session", settings.outageMs, log, () => store.holdSession(place));
    if (hold.held) return;
    this.#bound.delete(key);
    throw new SessionElsewhere(session, hold.address);
  }

  /** Of the other living replica that has a session; undefined where none has it. */
  async addressOf(session: string, project: string | undefined): Promise<string | undefined> {
    const sessions = await this.options.store.sessions({ project: project ?? null, limit: 10_000 });
    return sessions.find((one) => one.session === session && one.replica !== this.replica)?.address;
  }

  /** A session of this replica was closed. */
  async release(session: string, project: string | undefined): Promise<void> {
    const name = { project, session };
    this.#bound.delete(keyOf(name));
    await this.options.store.releaseSession({ ...name, replica: this.replica, sandbox: "" });
  }

  /** Those that are closed by now. One that was just bound may not be open yet. */
  async releaseClosed(): Promise<void> {
    const open = new Set(this.options.openSessions().map(keyOf));
    for (const [key, { boundAt, ...name }] of this.#bound) {
      if (open.has(key) || performance.now() - boundAt < openingMs) continue;
      await this.release(name.session, name.project).catch(() => this.#bound.set(key, { ...name, boundAt }));
    }
  }
}

const keyOf = ({ project, session }: SessionName) => JSON.stringify([project ?? null, session]);
