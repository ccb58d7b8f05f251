import { signalWithin } from "@ambit/backend-kit";
import type { Boundary, SandboxLayers } from "@ambit/core/plugin";
import type { DockerConfig } from "../config.js";
import type { Engine } from "../engine/engine.js";
import { asSandboxFailed, statusOf } from "../engine/engine.js";
import type { LayerVolumes } from "./layer-volumes.js";

interface DockerLayersOptions {
  readonly config: DockerConfig;
  readonly engine: () => Promise<Engine>;
  readonly host: () => Promise<{ readonly isDocker: boolean; readonly hasAllUsers: boolean }>;
  readonly volumes: () => Promise<LayerVolumes>;
}

/** Layers of a Docker engine. */
export class DockerLayers implements SandboxLayers {
  readonly #options: DockerLayersOptions;
  /** Whether this engine once couldn't mount one. */
  #cannotMount = false;

  constructor(options: DockerLayersOptions) {
    this.#options = options;
  }

  /** The image's id, and whose its files are. Undefined for Podman, whose volumes aren't tried, and before the image is pulled. */
  async system(signal: AbortSignal): Promise<string | undefined> {
    const { config } = this.#options;
    const { isDocker, hasAllUsers } = await this.#options.host();
    if (!isDocker) return undefined;
    const engine = await this.#options.engine();
    const named: { inspect(options: object): Promise<{ readonly Id: string }> } = engine.getImage(
      config.image,
    );
    try {
      const { Id } = await named.inspect({ abortSignal: signalWithin(config.requestTimeoutMs, signal) });
      return JSON.stringify([Id, config.bridge.firstUser, hasAllUsers]);
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw asSandboxFailed(error, `inspect the image ${config.image}`, config);
    }
  }

  /** A workspace with a limit is in memory. */
  supports({ resources }: Boundary): boolean {
    return this.#options.config.layers.max > 0 && resources.diskMb === undefined && !this.#cannotMount;
  }

  async has(name: string, signal: AbortSignal): Promise<boolean> {
    return (await (await this.#options.volumes()).find(name, signal)) !== undefined;
  }

  /** To be called with what kept a container with a layer from starting. */
  failed(error: unknown): void {
    if (error instanceof Error && /failed to mount local volume/.test(error.message))
      this.#cannotMount = true;
  }
}
