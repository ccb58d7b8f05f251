import { randomUUID } from "node:crypto";
import { filesystem, forwardingLog, quietLog, unlimitedBoundary } from "@ambit/attacks/probe";
import type { Boundary, LayerUse, Log, Sandbox, SandboxFailed, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type Ownership, Reaper, type ReaperOptions } from "./reaper.js";
import { type Prepared, WarmPool } from "./warm-pool.js";

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
      filesystem: filesystem(boundary.filesystem.mode),
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
      log: forwardingLog(() => this.#session?.log),
      onFailure: (failure) => this.fail(failure),
    };
  }
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
