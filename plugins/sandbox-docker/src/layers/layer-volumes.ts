import { randomUUID } from "node:crypto";
import { labelsOf, layerProjectLength, type Ownership, signalWithin } from "@ambit/backend-kit";
import { entriesToRemove, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import type { DockerConfig } from "../config.js";
import type { Engine } from "../engine/engine.js";
import { asSandboxFailed, statusOf } from "../engine/engine.js";

/** A volume of the engine. */
export interface Volume {
  readonly name: string;
  /** Its folder, as the engine sees it. */
  readonly folder: string;
}

/** The folders of a layer, or of one that is being made. */
export interface LayerParts {
  readonly workspace: Volume;
  readonly home: Volume;
}

const volumeSchema = z.object({
  Name: z.string(),
  Mountpoint: z.string(),
  Labels: z.record(z.string(), z.string()).nullish(),
  CreatedAt: z.string().optional(),
});
type Found = z.infer<typeof volumeSchema>;

const kinds = { layer: "layer", part: "layer-part" } as const;
const partLabels = { workspace: "ambit-workspace", home: "ambit-home" } as const;
/** Milliseconds after which a part without a layer is taken for the leftover of a runner that ended. */
const strayMs = 60 * 60 * 1_000;

/**
 * Layers as volumes of an engine. A layer has two, for workspace and home, and an empty one with the layer's name, whose labels
 * name the two: the engine makes a volume of a name once, so a layer appears as a whole.
 */
export class LayerVolumes {
  readonly #engine: Engine;
  readonly #config: DockerConfig;

  constructor(engine: Engine, config: DockerConfig) {
    this.#engine = engine;
    this.#config = config;
  }

  /** Undefined where there is none of this name. @throws SandboxFailed */
  async find(name: string, signal?: AbortSignal): Promise<LayerParts | undefined> {
    const layer = await this.#inspect(this.#nameOf(name), signal);
    const labels = layer?.Labels ?? {};
    if (labels.ambit !== kinds.layer) return undefined;
    const [workspace, home] = await Promise.all(
      [labels[partLabels.workspace], labels[partLabels.home]].map((part) =>
        this.#inspect(part ?? "", signal),
      ),
    );
    return workspace === undefined || home === undefined
      ? undefined
      : { workspace: volumeOf(workspace), home: volumeOf(home) };
  }

  /** Empty ones, for a layer that is to be made. @throws SandboxFailed */
  async newParts(): Promise<LayerParts> {
    const labels = { ambit: kinds.part, ...this.#deployment };
    const id = randomUUID();
    const made = await Promise.all(
      ["workspace", "home"].map((part) => this.#create(`ambit-layer-${id}-${part}`, labels)),
    );
    const [workspace, home] = made;
    if (workspace === undefined || home === undefined) throw new TypeError("a layer has two parts");
    return { workspace, home };
  }

  /** One that goes with its sandbox, or with its dead runner. @throws SandboxFailed */
  newOf(owner: Ownership): Promise<Volume> {
    return this.#create(undefined, { ...labelsOf(owner) });
  }

  /**
   * Makes the parts a layer, unless there is one of this name, and evicts others.
   * @throws SandboxFailed
   */
  async publish(name: string, parts: LayerParts): Promise<void> {
    // Its volumes may be gone, as after somebody removed them: nothing could begin with it any more.
    if ((await this.find(name)) === undefined) await this.remove(this.#nameOf(name));
    await this.#create(this.#nameOf(name), {
      ambit: kinds.layer,
      ...this.#deployment,
      [partLabels.workspace]: parts.workspace.name,
      [partLabels.home]: parts.home.name,
    });
    const published = await this.find(name);
    if (published === undefined) {
      await this.remove(this.#nameOf(name));
      throw new SandboxFailed("The volumes that were to become a layer were removed");
    }
    if (published.workspace.name !== parts.workspace.name) await this.removeParts(parts);
    await this.evict();
  }

  /** A part that a sandbox has mounted stays until the next search. */
  async removeParts({ workspace, home }: LayerParts): Promise<void> {
    await Promise.all([workspace, home].map(({ name }) => this.remove(name)));
  }

  /** Succeeds if there is none, or a container has it. @throws SandboxFailed */
  async remove(name: string): Promise<void> {
    try {
      await this.#engine.getVolume(name).remove({ abortSignal: this.#within() });
    } catch (error) {
      if (statusOf(error) === 404 || statusOf(error) === 409) return;
      throw asSandboxFailed(error, `remove the volume ${name}`, this.#config);
    }
  }

  /** Removes layers that are too old or too many. @throws SandboxFailed */
  async evict(): Promise<void> {
    // Parts first: those of a layer that is published meanwhile are then among the layers' parts.
    const parts = await this.#list(kinds.part);
    const layers = await this.#list(kinds.layer);
    const { max, maxAgeDays } = this.#config.layers;
    const limits = { max, before: Date.now() - maxAgeDays * dayMs };
    const removed = new Set(entriesToRemove(layers.map(ageOf), limits));
    for (const name of removed) await this.remove(name);
    const used = new Set(
      layers.filter(({ Name }) => !removed.has(Name)).flatMap(({ Labels }) => Object.values(Labels ?? {})),
    );
    const ofRemoved = new Set(
      layers.filter(({ Name }) => removed.has(Name)).flatMap(({ Labels }) => Object.values(Labels ?? {})),
    );
    const isStray = (part: Found) => ageOf(part).usedAt < Date.now() - strayMs;
    for (const part of parts) {
      if (!used.has(part.Name) && (ofRemoved.has(part.Name) || isStray(part))) await this.remove(part.Name);
    }
  }

  async #list(kind: string): Promise<readonly Found[]> {
    const label = [
      `ambit=${kind}`,
      ...Object.entries(this.#deployment).map(([name, value]) => `${name}=${value}`),
    ];
    const { Volumes } = await this.#asked("list its volumes", () =>
      this.#engine.listVolumes({ filters: { label }, abortSignal: this.#within() }),
    );
    return z.array(volumeSchema).parse(Volumes ?? []);
  }

  async #inspect(name: string, signal?: AbortSignal): Promise<Found | undefined> {
    if (name === "") return undefined;
    // The library's types don't have the option.
    const asked: { inspect(options: object): Promise<unknown> } = this.#engine.getVolume(name);
    return await this.#asked(`inspect the volume ${name}`, async () => {
      try {
        return volumeSchema.parse(await asked.inspect({ abortSignal: this.#within(signal) }));
      } catch (error) {
        if (statusOf(error) === 404) return undefined;
        throw error;
      }
    });
  }

  async #create(name: string | undefined, labels: Record<string, string>): Promise<Volume> {
    const made = await this.#asked("create a volume", () =>
      this.#engine.createVolume({
        ...(name === undefined ? {} : { Name: name }),
        Labels: labels,
        abortSignal: this.#within(),
      }),
    );
    const found = await this.#inspect(made.name);
    if (found === undefined) throw new SandboxFailed(`The volume ${made.name} was removed while it was made`);
    return volumeOf(found);
  }

  async #asked<Answer>(doing: string, ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await ask();
    } catch (error) {
      throw error instanceof SandboxFailed ? error : asSandboxFailed(error, doing, this.#config);
    }
  }

  #within(signal?: AbortSignal): AbortSignal {
    return signalWithin(this.#config.requestTimeoutMs, signal);
  }

  #nameOf(layer: string): string {
    return `ambit-layer-${this.#config.deployment}-${layer}`;
  }

  get #deployment(): Readonly<Record<string, string>> {
    return { "ambit-deployment": this.#config.deployment };
  }
}

/** Characters of a layer's name, with which its volume's ends. */
const layerNameLength = 64;
const dayMs = 24 * 60 * 60 * 1_000;

const volumeOf = ({ Name, Mountpoint }: Found): Volume => ({ name: Name, folder: Mountpoint });

/** An engine that doesn't say when: as old as can be. */
const ageOf = ({ Name, CreatedAt }: Found) => ({
  name: Name,
  project: Name.slice(-layerNameLength).slice(0, layerProjectLength),
  usedAt: CreatedAt === undefined ? 0 : Date.parse(CreatedAt) || 0,
});
