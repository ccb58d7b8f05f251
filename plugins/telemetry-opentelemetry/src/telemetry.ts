import { randomUUID } from "node:crypto";
import type { Log, UpstreamProxy } from "@ambit/core/plugin";
import type { TelemetryConfig } from "./config.js";
import type { TelemetryContext } from "./context.js";
import type { OtelEnvironment } from "./environment.js";
import { ExportCounts } from "./export/losses.js";
import type { Sdk } from "./export/sdk.js";

/** What the observers of this plugin share. */
export class Telemetry implements TelemetryContext {
  readonly counts = new ExportCounts();
  readonly instanceId = randomUUID();
  #sdk: Promise<Sdk> | undefined;

  constructor(
    readonly config: TelemetryConfig,
    readonly environment: OtelEnvironment,
    readonly log: Log,
    readonly upstreamProxy?: UpstreamProxy,
  ) {}

  /** The SDK takes tens of milliseconds to load: neither the server's start nor a run waits for it. */
  sdk(): Promise<Sdk> {
    this.#sdk ??= import("./export/sdk.js").then(({ Sdk }) => Sdk.load(this));
    return this.#sdk;
  }
}
