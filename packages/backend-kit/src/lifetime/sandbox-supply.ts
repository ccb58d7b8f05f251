import { randomUUID } from "node:crypto";
import { quietLog } from "@ambit/attacks/probe";
import type { LayerUse, Log, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import type { Ownership } from "./ownership.js";
import { Reaper, type ReaperOptions } from "./reaper.js";
import { type Shape, shapeOf } from "./shape.js";
import { type Prepared, WarmPool } from "./warm-pool.js";

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
