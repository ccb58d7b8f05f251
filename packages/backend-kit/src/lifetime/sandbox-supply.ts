/** Where sandboxes of a platform come from: made for a session, or prepared in advance for the next one like it. */

import { randomUUID } from "node:crypto";
import { quietLog, unlimitedBoundary } from "@ambit/attacks/probe";
import type { Boundary, LayerUse, Log, Sandbox, SandboxFailed, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type Ownership, Reaper, type ReaperOptions } from "./reaper.js";

/**
 * What a sandbox is created with if a proxy of the runner handles hosts and credentials. Two of the same shape are
 * interchangeable until a session has them.
 */
export interface Shape extends Pick<SandboxSpec, "boundary" | "required" | "requiredPaths"> {
  /** Whether the session has credentials that stay outside. */
  readonly hasSecrets: boolean;
}

/** Leaves out what differs between sessions of one shape: hosts, credentials. Pure. */
export function shapeOf({ boundary, required, requiredPaths, secrets = [] }: SandboxSpec): Shape {
  const { network, resources } = boundary;
  const mode: Boundary["network"]["mode"] = network.mode === "on" ? "on" : "off";
  return {
    boundary: {
      ...unlimitedBoundary,
      network: { mode, rules: [] },
      filesystem: { ...unlimitedBoundary.filesystem, mode: boundary.filesystem.mode },
      resources,
    },
    required: required.toSorted(),
    requiredPaths,
    hasSecrets: secrets.length > 0,
  };
}

/** The one session that a prepared sandbox is given to, which it doesn't know while it is made. */
export class Assignment {
  #session: SandboxSpec | undefined;
  #failure: SandboxFailed | undefined;

  /** Undefined while it belongs to none. */
  get session(): SandboxSpec | undefined {
    return this.#session;
  }

  /** Whether it wasn't lost while it waited. */
  get isUsable(): boolean {
    return this.#failure === undefined;
  }

  /** @throws SandboxFailed if the sandbox was lost; an error if it has a session already */
  give(session: SandboxSpec): void {
    if (this.#session !== undefined) throw new Error("the sandbox belongs to a session already");
    if (this.#failure !== undefined) throw this.#failure;
    this.#session = session;
  }

  /** Several may notice that it is lost: the first reason counts. */
  fail(failure: SandboxFailed): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#session?.onFailure?.(failure);
  }

  /** What the sandbox is made with: its log is the session's once it belongs to one, since no other log may mention it. */
  specOf(id: string, { boundary, required, requiredPaths }: Shape): SandboxSpec {
    return {
      id,
      boundary,
      required,
      requiredPaths,
      onDecision: () => undefined,
      log: sessionLog(() => this.#session?.log),
      onFailure: (failure) => this.fail(failure),
    };
  }
}

/** Writes to the current session's log; without a session, to none. */
function sessionLog(current: () => Log | undefined): Log {
  const level =
    (name: keyof Log): Log[keyof Log] =>
    (...entry) =>
      current()?.[name](...entry);
  return { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") };
}

/** A sandbox that belongs to no session yet. It holds nothing of a session, and serves only one. */
export interface PreparedSandbox<Opened extends Sandbox, Overrides extends object> extends Prepared {
  /** Gives it to a session, once. Closes it if that fails. @throws SandboxFailed */
  give(spec: SandboxSpec, overrides: Overrides, signal: AbortSignal): Promise<Opened>;
}

/** What the platform is to make. */
export interface SandboxOrder {
  /** Its name in labels and folders: the session's, or a separate one. */
  readonly id: string;
  readonly shape: Shape;
  /** What the platform is to keep beside everything that is made for it. */
  readonly owner: Ownership;
  /** As `SandboxSpec.layer`. */
  readonly layer?: LayerUse;
  /** To be called once it is gone, or is the reaper's. */
  onEnded(): void;
}

export interface SandboxSupplyOptions<Opened extends Sandbox, Overrides extends object>
  extends ReaperOptions {
  /** The most that wait for a session. */
  readonly prewarm: number;
  /** Whether the deployer asked for that. If not, the second session shows that more may follow. */
  readonly isPrewarmAsked: boolean;
  /** How sessions are given a sandbox. Probes may have others. */
  readonly overrides: Overrides;
  /** Leaves nothing if it fails. @throws SandboxFailed */
  make(order: SandboxOrder, log: Log, signal: AbortSignal): Promise<PreparedSandbox<Opened, Overrides>>;
}

/**
 * Sandboxes of a platform that keeps labels: new ones, ones that were prepared in advance, and the end of those that dead
 * runners left.
 */
export class SandboxSupply<Opened extends Sandbox, Overrides extends object> {
  readonly #options: SandboxSupplyOptions<Opened, Overrides>;
  readonly #reaper: Reaper;
  readonly #warm: WarmPool<Shape, PreparedSandbox<Opened, Overrides>>;
  #log: Log = quietLog;
  /** Whether a session has one. Probes don't count. */
  #hasOpened = false;

  constructor(options: SandboxSupplyOptions<Opened, Overrides>) {
    this.#options = options;
    this.#reaper = new Reaper(options);
    this.#warm = new WarmPool({
      size: options.prewarm,
      make: (shape, signal) => this.#make(`warm-${randomUUID()}`, shape, undefined, quietLog, signal),
      onFault: (error) =>
        this.#log.warn({ error }, "a sandbox couldn't be prepared, or a prepared one couldn't be used"),
    });
  }

  /** To be called before a probe. */
  reapInBackground(): void {
    this.#reaper.reapInBackground(this.#log);
  }

  /** For a session: a prepared one if one fits, else a new one. @throws SandboxFailed, the signal's reason */
  async open(spec: SandboxSpec, { signal }: Scope): Promise<Opened> {
    const { overrides, isPrewarmAsked } = this.#options;
    this.#log = spec.log;
    this.#reaper.reapInBackground(spec.log);
    // Those that wait begin with no layer.
    if (spec.layer !== undefined) return await this.openNew(spec, { signal });
    const shape = shapeOf(spec);
    try {
      const prepared = await this.#warm.using(shape, (warm) => warm.give(spec, overrides, signal), signal);
      return prepared ?? (await this.openNew(spec, { signal }));
    } finally {
      if (isPrewarmAsked || this.#hasOpened) this.#warm.want(shape);
      this.#hasOpened = true;
    }
  }

  /** A new one. @param overrides for a probe. Default: a session's. @throws SandboxFailed, the signal's reason */
  async openNew(
    spec: SandboxSpec,
    { signal }: Pick<Scope, "signal">,
    overrides: Partial<Overrides> = {},
  ): Promise<Opened> {
    const prepared = await this.#make(spec.id, shapeOf(spec), spec.layer, spec.log, signal);
    return await prepared.give(spec, { ...this.#options.overrides, ...overrides }, signal);
  }

  /** Closes those that wait. */
  async close(): Promise<void> {
    await this.#warm.close();
  }

  async #make(id: string, shape: Shape, layer: LayerUse | undefined, log: Log, signal: AbortSignal) {
    return await this.#reaper.holding(id, (owner, onEnded) =>
      this.#options.make({ id, shape, layer, owner, onEnded }, log, signal),
    );
  }
}

/** Something that was created in advance. */
export interface Prepared {
  /** False if it was lost while it waited. */
  readonly isUsable: boolean;
  /** Leaves nothing behind. */
  close(): Promise<void>;
}

export interface WarmPoolOptions<Shape, Item extends Prepared> {
  /** The maximum that waits, of all shapes. 0: none is created. */
  readonly size: number;
  /** Milliseconds after which an unused one is closed. Default a quarter of an hour. */
  readonly idleMs?: number;
  /**
   * Milliseconds between an opening and the creation for the next one, so that it doesn't slow the new session. Default
   * 200.
   */
  readonly delayMs?: number;
  /** Creates one that any opening of this shape may take. */
  make(shape: Shape, signal: AbortSignal): Promise<Item>;
  /** Called with an error of creating, using or closing one. It is tried again after the next opening. */
  onFault(error: unknown): void;
}

const creationTimeoutMs = 60_000;

interface Waiting<Item> {
  readonly key: string;
  readonly prepared: Item;
  readonly expiry: NodeJS.Timeout;
}

/**
 * Creates sandboxes in advance: as many of each shape as the last `size` openings used. What was taken
 * never comes back. One is created at a time, so that openings in progress lose little to it.
 */
export class WarmPool<Shape, Item extends Prepared> {
  readonly #options: WarmPoolOptions<Shape, Item>;
  /** The shapes of the last openings, oldest first. */
  #wanted: { readonly key: string; readonly shape: Shape }[] = [];
  #waiting: Waiting<Item>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions<Shape, Item>) {
    this.#options = options;
  }

  /** Takes one that fits such an opening; undefined if there is none. */
  take(shape: Shape): Item | undefined {
    const key = keyOf(shape);
    for (const lost of this.#waiting.filter(({ prepared }) => !prepared.isUsable)) void this.#drop(lost);
    const fitting = this.#waiting.find((waiting) => waiting.key === key);
    if (fitting !== undefined) this.#remove(fitting);
    return fitting?.prepared;
  }

  /**
   * The result of `use` with a waiting one; undefined if there is none, or if that one failed.
   *
   * @throws the signal's reason
   */
  async using<Result>(
    shape: Shape,
    use: (prepared: Item) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const prepared = this.take(shape);
    try {
      return prepared === undefined ? undefined : await use(prepared);
    } catch (error) {
      signal.throwIfAborted();
      this.#options.onFault(error);
      return undefined;
    }
  }

  /** Records the shape of an opening, since the next ones may have the same. */
  want(shape: Shape): void {
    const { size, delayMs = 200 } = this.#options;
    if (size === 0 || this.#closing.signal.aborted) return;
    this.#wanted = [...this.#wanted, { key: keyOf(shape), shape }].slice(-size);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refill(), delayMs);
    this.#timer.unref();
  }

  /** Closes all that wait, aborts the one that is being created, and creates no more. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#filling;
    await Promise.all([...this.#waiting].map((waiting) => this.#drop(waiting)));
  }

  #refill(): void {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  async #fill(): Promise<void> {
    for (const surplus of this.#beyondWanted()) void this.#drop(surplus);
    const closing = this.#closing.signal;
    for (let next = this.#missing(); next !== undefined && !closing.aborted; next = this.#missing()) {
      const { key, shape } = next;
      const signal = AbortSignal.any([closing, AbortSignal.timeout(creationTimeoutMs)]);
      try {
        this.#add(key, await this.#options.make(shape, signal));
      } catch (error) {
        if (closing.aborted) return;
        this.#wanted = this.#wanted.filter((wanted) => wanted.key !== key);
        this.#options.onFault(error);
      }
    }
  }

  /** The first shape of which fewer wait than were used. */
  #missing() {
    return this.#wanted.find(({ key }) => count(this.#waiting, key) < count(this.#wanted, key));
  }

  #beyondWanted(): readonly Waiting<Item>[] {
    return this.#waiting.filter(
      ({ key }, at) => count(this.#waiting.slice(0, at), key) >= count(this.#wanted, key),
    );
  }

  #add(key: string, prepared: Item): void {
    const expire = () => {
      this.#wanted = this.#wanted.filter((wanted) => wanted.key !== key);
      void this.#drop(added);
    };
    const added = { key, prepared, expiry: setTimeout(expire, this.#options.idleMs ?? 15 * 60_000).unref() };
    this.#waiting.push(added);
    // It was needed when it was begun.
    for (const surplus of this.#beyondWanted()) void this.#drop(surplus);
  }

  #remove(waiting: Waiting<Item>): void {
    clearTimeout(waiting.expiry);
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
  }

  async #drop(waiting: Waiting<Item>): Promise<void> {
    this.#remove(waiting);
    try {
      await waiting.prepared.close();
    } catch (error) {
      this.#options.onFault(error);
    }
  }
}

const keyOf = (shape: unknown) => JSON.stringify(shape);

function count(all: readonly { readonly key: string }[], key: string): number {
  return all.filter((entry) => entry.key === key).length;
}
