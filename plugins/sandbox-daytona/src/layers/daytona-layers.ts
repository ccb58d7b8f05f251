import type { Boundary, SandboxLayers } from "@ambit/core/plugin";
import { unlessAborted } from "@ambit/core/plugin";
import type { DaytonaConfig } from "../config.js";
import { asSandboxFailed } from "../platform/failure.js";
import { withRetries } from "../platform/retries.js";
import type { Service } from "../platform/service.js";

/** Milliseconds for which no layer is made or used after one couldn't be. */
const pauseMs = 60 * 60 * 1_000;

/** Layers of an organisation. */
export class DaytonaLayers implements SandboxLayers {
  readonly #config: DaytonaConfig;
  readonly #service: () => Promise<Service>;
  /** Milliseconds of `performance.now`. */
  #pausedUntil = 0;

  constructor(config: DaytonaConfig, service: () => Promise<Service>) {
    this.#config = config;
    this.#service = service;
  }

  /** The snapshot's id, or the image's digest. */
  async system(signal: AbortSignal): Promise<string | undefined> {
    const { snapshot: name, image, requestTimeoutMs: limitMs } = this.#config;
    if (name === undefined) return digestOf(image);
    const service = await this.#service();
    const options = { retries: 2, limitMs, signal };
    try {
      const found = await unlessAborted(signal, () => withRetries(() => service.snapshot(name), options));
      return found && `snapshot ${found.id}`;
    } catch (error) {
      signal.throwIfAborted();
      throw asSandboxFailed(error, `reading the snapshot ${name}`);
    }
  }

  /** A sandbox made from a snapshot has that one's size. */
  supports({ resources: { cpus, memoryMb, diskMb } }: Boundary): boolean {
    const { max } = this.#config.layers;
    const hasLimits = cpus !== undefined || memoryMb !== undefined || diskMb !== undefined;
    return max > 0 && this.#hasKnownPrograms && !hasLimits && performance.now() >= this.#pausedUntil;
  }

  /** Removes those that are too old or too many. @throws SandboxFailed */
  async evict(): Promise<void> {
    if (!this.#hasKnownPrograms) return;
    const { LayerSnapshots } = await import("./layer-snapshots.js");
    await new LayerSnapshots(await this.#service(), this.#config).evict();
  }

  get #hasKnownPrograms(): boolean {
    const { snapshot, image } = this.#config;
    return snapshot !== undefined || digestOf(image) !== undefined;
  }

  async has(name: string, signal: AbortSignal): Promise<boolean> {
    const { LayerSnapshots } = await import("./layer-snapshots.js");
    return await new LayerSnapshots(await this.#service(), this.#config).has(name, signal);
  }

  /** To be called when a layer couldn't be made or begun with: each try costs a run's time. */
  failed(): void {
    this.#pausedUntil = performance.now() + pauseMs;
  }
}

/** Undefined where the name may refer to another image tomorrow. */
function digestOf(image: string | undefined): string | undefined {
  return image !== undefined && /@sha256:[0-9a-f]{64}$/.test(image) ? `image ${image}` : undefined;
}
