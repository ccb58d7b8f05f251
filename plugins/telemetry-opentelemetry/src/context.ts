import type { Log, UpstreamProxy } from "@ambit/core/plugin";
import type { TelemetryConfig } from "./config.js";
import type { OtelEnvironment } from "./environment.js";
import type { ExportCounts } from "./export/losses.js";

/** What all signals have in common. */
export interface TelemetryContext {
  readonly config: TelemetryConfig;
  readonly environment: OtelEnvironment;
  readonly counts: ExportCounts;
  /** The resource's `service.instance.id`: one for all signals of this process. */
  readonly instanceId: string;
  readonly log: Log;
  /** The deployer's proxy. Undefined: there is none. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
}
