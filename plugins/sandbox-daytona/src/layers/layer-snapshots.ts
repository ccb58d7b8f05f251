import { createHash } from "node:crypto";
import { layerProjectLength } from "@ambit/backend-kit";
import { entriesToRemove, SandboxFailed, unlessAborted } from "@ambit/core/plugin";
import type { DaytonaConfig } from "../config.js";
import { asSandboxFailed, ServiceFailure } from "../platform/failure.js";
import { pauseFor, withRetries } from "../platform/retries.js";
import type { Machine, Service, StoredSnapshot } from "../platform/service.js";

type Settings = Pick<
  DaytonaConfig,
  "namePrefix" | "deployment" | "target" | "bridge" | "layers" | "requestTimeoutMs"
>;

/** Layers as snapshots of the organisation. */
export class LayerSnapshots {
  readonly #service: Service;
  readonly #config: Settings;

  constructor(service: Service, config: Settings) {
    this.#service = service;
    this.#config = config;
  }

  /** Whether sandboxes can be made from it. @throws SandboxFailed */
  async has(layer: string, signal?: AbortSignal): Promise<boolean> {
    return (await this.#find(snapshotName(this.#config, layer), signal))?.state === "active";
  }

  /**
   * Makes the sandbox's files the layer, unless there is one of this name.
   * @throws SandboxFailed; the signal's reason
   */
  async keep(layer: string, machine: Machine, signal: AbortSignal): Promise<void> {
    const name = snapshotName(this.#config, layer);
    const { timeoutMs } = this.#config.layers;
    const end = performance.now() + timeoutMs;
    const found = await this.#find(name, signal);
    if (found?.state === "active") return;
    // Such as one that wasn't used for weeks: its name is taken.
    if (found !== undefined) await this.#remove(found);
    try {
      await unlessAborted(signal, () => machine.makeSnapshot(name, timeoutMs));
    } catch (error) {
      signal.throwIfAborted();
      // Another runner was faster.
      if (!(error instanceof ServiceFailure) || error.kind !== "conflict")
        throw asSandboxFailed(error, "making a snapshot of a sandbox");
    }
    await this.#waitFor(name, end, signal);
  }

  /** The platform reports a failure only by its absence. */
  async #waitFor(name: string, end: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const found = await this.#find(name, signal);
      if (found?.state === "active") return;
      if (found === undefined || failed.has(found.state) || performance.now() >= end) {
        const why = found === undefined ? "there is none" : (found.errorReason ?? `it is ${found.state}`);
        throw new SandboxFailed(
          `Daytona made no snapshot of a sandbox (${why}): check the organisation's limit of snapshots and its region's registry, or set sandbox-daytona's layers.max to 0`,
        );
      }
      await pauseFor(pollMs, signal);
      signal.throwIfAborted();
    }
  }

  /** Removes those that are too old or too many. @throws SandboxFailed */
  async evict(): Promise<void> {
    const prefix = prefixOf(this.#config);
    const ours = new Map<string, StoredSnapshot & { readonly project: string }>();
    try {
      for await (const snapshot of this.#service.listSnapshots(prefix)) {
        // A deployment's name may begin with another one's.
        const [, project] = /^([0-9a-f]{16})-[0-9a-f]{40}$/.exec(snapshot.name.slice(prefix.length)) ?? [];
        if (project !== undefined) ours.set(snapshot.name, { ...snapshot, project });
      }
    } catch (error) {
      throw asSandboxFailed(error, "listing snapshots");
    }
    const { max, maxAgeDays } = this.#config.layers;
    const layers = [...ours.values()].map(({ name, project, createdAt }) => ({
      name,
      project,
      usedAt: createdAt,
    }));
    const removed = entriesToRemove(layers, { max, before: Date.now() - maxAgeDays * dayMs });
    for (const name of removed) {
      const snapshot = ours.get(name);
      if (snapshot !== undefined) await this.#remove(snapshot);
    }
  }

  async #find(name: string, signal?: AbortSignal): Promise<StoredSnapshot | undefined> {
    try {
      return await withRetries(() => this.#service.snapshot(name), {
        retries: 2,
        limitMs: this.#config.requestTimeoutMs,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw asSandboxFailed(error, `reading the snapshot ${name}`);
    }
  }

  /** Another runner may remove it at the same time. */
  async #remove({ id, name }: StoredSnapshot): Promise<void> {
    try {
      await this.#service.deleteSnapshot(id);
    } catch (error) {
      if (error instanceof ServiceFailure && error.kind === "missing") return;
      throw asSandboxFailed(error, `deleting the snapshot ${name}`);
    }
  }
}

const pollMs = 500;
const dayMs = 24 * 60 * 60 * 1_000;
const failed: ReadonlySet<string> = new Set(["inactive", "error", "build_failed", "removing"]);

const prefixOf = ({ namePrefix, deployment }: Pick<Settings, "namePrefix" | "deployment">) =>
  `${namePrefix}-layer-${deployment}-`;

/**
 * Whose it is, and a digest of its name and of what decides whether its files are where a sandbox looks for them, and can be used
 * there. Pure.
 */
export function snapshotName(config: Settings, layer: string): string {
  const { target, bridge } = config;
  const of = JSON.stringify([layer, target, bridge.folder, bridge.firstUser]);
  const digest = createHash("sha256").update(of).digest("hex").slice(0, 40);
  return `${prefixOf(config)}${layer.slice(0, layerProjectLength)}-${digest}`;
}
