import type { Capability } from "../contract/index.js";
import type { PluginBrokeContract } from "../errors.js";
import type {
  Finding,
  Harness,
  ModelGateway,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
  UpstreamProxy,
} from "../plugin/index.js";

/** An actor with its probe's findings on this host, and the time of the probe. */
export interface Probed<A> {
  readonly actor: A;
  /** The plugin that offers it, for messages. */
  readonly plugin?: string;
  readonly findings: ReadonlyMap<Capability, Finding>;
  /** When the probe ended (ISO 8601). */
  readonly probedAt: string;
  /** Set if the probe broke its contract: a plan that needs its findings fails with this error. */
  readonly fault?: PluginBrokeContract | undefined;
}

/** Every actor that a run could use, probed, each list in configured order. */
export interface Candidates {
  readonly sandboxes: readonly Probed<SandboxBackend>[];
  readonly executors: readonly Probed<ToolExecutor>[];
  readonly deliveries: readonly Probed<ToolDelivery>[];
  readonly harnesses: readonly Probed<Harness>[];
  readonly toolSources: readonly Probed<ToolSource>[];
  readonly gateways: readonly Probed<ModelGateway>[];
  /** The deployer's proxy, for the sandboxes. Default: none. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /** The folder of this host that is the workspace of the run. Default: it has a new one. */
  readonly workspaceFolder?: string | undefined;
}

/** An actor in the run, with the tools or servers it acts for. */
export interface PlannedActor<A, Use> {
  readonly probed: Probed<A>;
  readonly uses: readonly Use[];
}
