import { randomBytes } from "node:crypto";
import type { Ownership } from "@ambit/backend-kit";
import { commandFromInput } from "@ambit/bridge";
import { type Evidence, type Log, SandboxFailed } from "@ambit/core/plugin";
import {
  gateProgram,
  openRelay,
  RemoteGate,
  relayProgram,
  type ServeOptions,
  type StartedRelay,
  secretBytes,
} from "@ambit/egress/remote";
import { asSandboxFailed } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter.js";
import { policiesIn, reviewPolicies, SessionPolicies, whyNotClosed } from "../network/policies.js";
import type { Cluster, PodWatch } from "../pod/cluster.js";
import {
  gateLabels,
  gateManifestOf,
  gateName,
  gatePort,
  gateUser,
  type LeaseReference,
  sandboxLabels,
  shellCommand,
} from "../pod/manifest.js";
import { type PodMachine, type StartedPod, startPod } from "../pod/pod-machine.js";

export interface SessionGateOptions {
  readonly cluster: Cluster;
  readonly config: KubernetesConfig;
  readonly watch: PodWatch;
  readonly podShape: PodShape;
  readonly owner: Ownership;
  readonly lease: LeaseReference;
  /** The sandbox's pod. */
  readonly machine: PodMachine;
  readonly log: Log;
  /** Called when the gate, or the way to it, is lost: the sandbox then has no network. */
  onFailure(failure: SandboxFailed): void;
}

/** One line, so that a failed try costs nothing but it. */
const firstScript = "echo ready; ";

/**
 * The gate of one session, in a pod of its own, and the relay in the sandbox's pod that leads there. The gate's program is the
 * command of a stream from this runner, and so is the relay: each ends with its stream.
 */
export class SessionGate {
  readonly #options: SessionGateOptions;
  readonly #policies: SessionPolicies;
  readonly #secret = randomBytes(secretBytes);
  #pod: StartedPod | undefined;
  #gate: RemoteGate | undefined;
  #relay: StartedRelay | undefined;
  #closed: Promise<void> | undefined;

  private constructor(options: SessionGateOptions) {
    this.#options = options;
    this.#policies = new SessionPolicies(options.cluster);
  }

  /** Resolves when the sandbox's pod reaches it. It admits nothing yet. @throws SandboxFailed; nothing is left then */
  static async open(options: SessionGateOptions, signal: AbortSignal): Promise<SessionGate> {
    const gate = new SessionGate(options);
    try {
      const host = await gate.#start(signal);
      await gate.#connect(host, signal);
      await gate.#refuseOtherPolicies(signal);
      return gate;
    } catch (error) {
      await gate.close().catch((problem: unknown) => {
        options.log.warn({ error: problem }, "a gate's pod couldn't be deleted");
      });
      signal.throwIfAborted();
      throw asSandboxFailed(error, "open the gate of a sandbox");
    }
  }

  /** Of a Unix socket in the sandbox's pod that leads to the gate. Only root may open it. */
  get path(): string {
    return `${this.#options.config.bridge.folder}/gate.sock`;
  }

  get evidence(): Evidence {
    const { config, owner } = this.#options;
    return {
      "kubernetes.gate": `${config.namespace}/${gateName(owner)}`,
      "kubernetes.gateReachedMs": this.#relay?.afterMs ?? -1,
    };
  }

  /** From now on, it admits what the session's boundary does. @throws SandboxFailed, the signal's reason */
  async serve(served: ServeOptions): Promise<void> {
    if (this.#gate === undefined) throw new Error("the gate isn't open");
    await this.#gate.serve(served);
  }

  /** Ends every connection, and confirms that the gate's pod and policies are gone. @throws SandboxFailed */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#pod?.unfollow();
    const ended = await Promise.allSettled([
      this.#relay?.close(),
      this.#gate?.close(),
      this.#policies.delete(),
      this.#pod?.machine.destroy(),
    ]);
    for (const result of ended) if (result.status === "rejected") throw result.reason;
  }

  /** @returns the gate's address. */
  async #start(signal: AbortSignal): Promise<string> {
    const { config, owner, log } = this.#options;
    const { node, heartbeatTimeoutMs: silenceMs } = config.bridge;
    const program = await gateProgram();
    const onLost = (failure: SandboxFailed) => this.#lost(failure);
    this.#pod = await startPod(
      {
        ...this.#options,
        manifest: gateManifestOf(this.#options),
        first: {
          argv: shellCommand(firstScript, await commandFromInput(node, program), config.searchPath),
          count: 1,
          input: program,
        },
        created: ({ metadata: { name, uid } }) => this.#policies.create(owner, { name, uid }, signal),
        onFailure: onLost,
      },
      log,
      signal,
    );
    const { firstPipe: pipe, running } = this.#pod;
    running.catch(() => undefined);
    this.#gate = await RemoteGate.begin({
      pipe,
      port: gatePort,
      secret: this.#secret,
      silenceMs,
      signal,
      onLost,
    });
    await running;
    const [host] = this.#gate.addresses;
    if (host === undefined)
      throw new SandboxFailed("The gate's pod has no address: see the cluster's network");
    return host;
  }

  async #connect(host: string, signal: AbortSignal): Promise<void> {
    const { config, machine } = this.#options;
    const program = await relayProgram();
    const argv = shellCommand(
      firstScript,
      await commandFromInput(config.bridge.node, program),
      config.searchPath,
    );
    const begun = await machine.begin(argv, { count: 1, input: program }, signal);
    if (!("pipe" in begun))
      throw new SandboxFailed(`The relay to the gate couldn't be started: ${begun.output}`);
    const { settleMs, bridge } = config;
    const settings = {
      path: this.path,
      gate: { host, port: gatePort },
      secret: this.#secret,
      settleMs,
      silenceMs: bridge.heartbeatTimeoutMs,
      user: gateUser,
    };
    this.#relay = await openRelay({
      pipe: begun.pipe,
      settings,
      signal,
      onLost: (failure) => this.#lost(failure),
    });
  }

  /** Several may notice it: the first reason counts, and none does once it is closed. */
  #lost(cause: SandboxFailed): void {
    if (this.#closed !== undefined) return;
    // What is left of it has no use: its pod may run for a while longer, without a reader for its records.
    for (const end of [this.#gate, this.#relay]) end?.close().catch(() => undefined);
    const limits = "The limits of a gate are sandbox-kubernetes' gate";
    this.#options.onFailure(
      new SandboxFailed(
        `The gate of the sandbox was lost, so that it has no network: ${cause.message}. ${limits}`,
        {
          cause,
          concerns: cause.concerns,
        },
      ),
    );
  }

  /** In the weaker shape, policies are all that closes the pod. */
  async #refuseOtherPolicies(signal: AbortSignal): Promise<void> {
    const { cluster, config, podShape, owner } = this.#options;
    if (podShape !== "baseline") return;
    const others = this.#policies.othersAmong(await policiesIn(cluster, signal));
    const ownLabels = [sandboxLabels(owner, config, false), gateLabels(owner)];
    for (const labels of ownLabels) {
      const open = whyNotClosed(reviewPolicies(others, labels), config.namespace);
      if (open !== undefined)
        throw new SandboxFailed(`The way to the gate isn't the only one: ${open.reason}: ${open.fix}`);
    }
  }
}
