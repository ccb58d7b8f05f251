import { dirname } from "node:path/posix";
import type { SandboxOverrides } from "@ambit/attacks/standard-probe";
import { Assignment, type PreparedSandbox as Prepared, type SandboxOrder } from "@ambit/backend-kit";
import {
  directCommandOf,
  foldersOf,
  openRemoteSandbox,
  ownSystemOptions,
  type RemoteSandbox,
} from "@ambit/bridge";
import type { Log, SandboxSpec } from "@ambit/core/plugin";
import {
  type CredentialBroker,
  openSessionBroker,
  readAuthorities,
  trustInImage,
} from "@ambit/egress/credentials";
import { openSessionEgress, type SessionEgress } from "@ambit/egress/proxy";
import { mountsAgents } from "../config.js";
import { asSandboxFailed } from "../engine/engine.js";
import type { LayerVolumes } from "../layers/layer-volumes.js";
import { type MountedLayer, mountLayer } from "../layers/mounted-layer.js";
import { copyRoot } from "./container-options.js";
import {
  readBack,
  requireRunning,
  type StartContainerOptions,
  type StartedContainer,
  startContainer,
} from "./start-container.js";

type PrepareContainerOptions = Omit<StartContainerOptions, "guest" | "mountedLayer"> &
  SandboxOrder & { readonly volumes: LayerVolumes };

const bridgeOf = ({ id, config, shape: { boundary }, layer }: PrepareContainerOptions) => ({
  ...ownSystemOptions({ id, boundary }, config.bridge),
  hasFolders: layer !== undefined,
});

/**
 * A container with a guest daemon that belongs to no session yet. It holds nothing of a session, and serves only one.
 */
export class PreparedSandbox implements Prepared<RemoteSandbox, SandboxOverrides> {
  readonly #options: PrepareContainerOptions;
  readonly #started: StartedContainer;
  readonly #layer: MountedLayer | undefined;
  readonly #assignment = new Assignment();
  #sandbox: RemoteSandbox | undefined;
  /** Whether its files become a layer. */
  #isKept = false;
  #broker: CredentialBroker | undefined;
  /** Without a proxy: the variables by which programs trust what was added to the image's store. */
  #trustedBy: SessionEgress["environment"] | undefined;
  #egress: SessionEgress | undefined;

  private constructor(
    options: PrepareContainerOptions,
    started: StartedContainer,
    layer: MountedLayer | undefined,
  ) {
    this.#options = options;
    this.#started = started;
    this.#layer = layer;
  }

  /** @throws SandboxFailed */
  static async make(
    options: PrepareContainerOptions,
    log: Log,
    signal: AbortSignal,
  ): Promise<PreparedSandbox> {
    const guest = await directCommandOf(bridgeOf(options));
    const { layer: use, volumes, owner } = options;
    const layer = use && (await mountLayer(use, foldersOf(bridgeOf(options)), volumes, owner, signal));
    let started: StartedContainer | undefined;
    try {
      started = await startContainer({ ...options, guest, mountedLayer: layer }, log, signal);
      await layer?.confirm(signal);
    } catch (error) {
      await started?.container.destroy().catch(() => undefined);
      await layer?.ended();
      throw error;
    }
    const prepared = new PreparedSandbox(options, started, layer);
    prepared.#sandbox = await prepared.#bridge(signal);
    return prepared;
  }

  get isUsable(): boolean {
    return this.#assignment.isUsable;
  }

  /**
   * Gives it to a session, once. Closes it if that fails.
   *
   * @throws SandboxFailed
   */
  async give(
    spec: SandboxSpec,
    { lookup, trusted }: SandboxOverrides,
    signal: AbortSignal,
  ): Promise<RemoteSandbox> {
    const { config, host } = this.#options;
    const { container, requested } = this.#started;
    const sandbox = this.#sandbox;
    try {
      if (sandbox === undefined) throw new Error("the container has no guest daemon");
      this.#assignment.give(spec);
      const trust = { plugin: "sandbox-docker", trustedAuthorities: config.trustedAuthorities, trusted };
      const broker = await openSessionBroker(spec, trust);
      this.#broker = broker;
      // A prepared container may have been changed, or have ended, since it was made.
      if (this.#options.id !== spec.id) {
        const applied = await container.inspect(signal);
        readBack(applied, requested, host.isDocker);
        await requireRunning(applied, container);
      }
      const authorities = await readAuthorities(config.trustedAuthorities, "sandbox-docker");
      const trusting = { access: container, folder: dirname(sandbox.workspace), broker, authorities };
      if (spec.boundary.network.mode === "allowlist")
        this.#egress = await openSessionEgress({ sandbox, ...trusting, spec, lookup, signal });
      else if (spec.boundary.network.mode === "on") this.#trustedBy = await trustInImage(trusting, signal);
      const publish = this.#layer?.publish;
      return publish === undefined
        ? sandbox
        : Object.assign(sandbox, {
            keepAsLayer: async () => {
              this.#isKept = true;
              await sandbox.close();
              await publish();
            },
          });
    } catch (error) {
      await this.close();
      throw asSandboxFailed(error, "open a sandbox", config);
    }
  }

  async close(): Promise<void> {
    await this.#sandbox?.close();
  }

  async #bridge(signal: AbortSignal): Promise<RemoteSandbox> {
    const { id, shape, config, layer, onEnded } = this.#options;
    const { container } = this.#started;
    const evidence =
      layer?.use === "begin"
        ? { ...this.#started.evidence, "docker.layer": layer.name.slice(0, 12) }
        : this.#started.evidence;
    const destroy = async () => {
      try {
        await this.#egress?.close();
        await container.destroy();
        if (!this.#isKept) await this.#layer?.ended();
      } finally {
        // What couldn't be removed is the reaper's from now on.
        onEnded();
      }
    };
    return await openRemoteSandbox(
      {
        platform: {
          // Whose command the container began with.
          hasProgram: container.hasProgram,
          openDirectPipe: () => container.openDirectPipe(),
          whyLost: (within) => container.whyLost(within),
          upload: (path, content, within) => container.upload(path, content, within),
          destroy,
        },
        evidence,
        ...bridgeOf(this.#options),
        isClosedUnclaimed: true,
        spec: this.#assignment.specOf(id, shape),
        ...(mountsAgents(config) ? { copyRoot } : {}),
        imageName: config.image,
        // A container's loopback is its own: the configuration accepts no network of other processes.
        inbound: () => this.#assignment.session?.boundary.inbound ?? [],
        environment: (command) => this.#egress?.environment(command) ?? this.#trustedBy?.(command) ?? {},
        placeholders: () => this.#broker?.placeholders ?? {},
      },
      { signal, defer: () => undefined },
    );
  }
}
