import { readFileSync } from "node:fs";
import type { Log } from "@ambit/core/plugin";
import { DiagLogLevel, diag } from "@opentelemetry/api";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import type { TelemetryContext } from "../context.js";
import type { SignalName } from "../environment.js";
import { AccountingDelegate, type ExportProgress, environmentSender, type Grpc } from "./delegate.js";
import { Losses } from "./losses.js";
import type { ExportedSignal } from "./signal.js";

/**
 * The conventions that names of spans, attributes and metrics follow. It is their last version that has a schema: since
 * then those for generative AI are in a repository of their own, which hasn't published any.
 */
export const schemaUrl = "https://opentelemetry.io/schemas/1.41.0";

/** OpenTelemetry's SDK, loaded, and what all signals have in common. */
export class Sdk {
  /** The instrumentation scope. */
  readonly scope: { readonly name: string; readonly version: string; readonly schemaUrl: string };
  readonly resource: Resource;

  private constructor(
    readonly telemetry: TelemetryContext,
    readonly grpc: Grpc | undefined,
  ) {
    this.scope = { name: "ambit", version: version(), schemaUrl };
    this.resource = resourceOf(telemetry, this.scope.version);
  }

  static async load(telemetry: TelemetryContext): Promise<Sdk> {
    reportTo(telemetry.log);
    const protocols = Object.values(telemetry.environment.exported).map(({ protocol }) => protocol);
    const grpc = protocols.includes("grpc") ? await loadGrpc() : undefined;
    return new Sdk(telemetry, grpc);
  }

  losses(signal: SignalName, origin: string): Losses {
    return new Losses(signal, origin, this.telemetry.counts, this.telemetry.log);
  }

  /** To the destination in OpenTelemetry's variables. @param maxExports batches at once */
  toEnvironment<Data>(
    signal: ExportedSignal<Data>,
    maxExports: number,
    losses: Losses,
    progress?: ExportProgress,
  ): AccountingDelegate<Data> {
    const exported = this.telemetry.environment.exported[signal.name];
    if (exported === undefined)
      throw new Error(`OpenTelemetry's variables name no destination for ${signal.name}.`);
    const { protocol } = exported;
    const { upstreamProxy } = this.telemetry;
    const send = environmentSender(signal, protocol, { maxExports, grpc: this.grpc, upstreamProxy });
    return new AccountingDelegate(signal, protocol, send, losses, progress);
  }
}

/** Bundled, it would have two copies of grpc-js, since it also requires that while it runs: neither takes the other's objects. */
async function loadGrpc(): Promise<Grpc> {
  const grpc: Grpc = await import(new URL("./grpc.js", import.meta.url).href);
  return grpc;
}

/** The SDK's own warnings go to the log, as text alone, since its values may be content. */
function reportTo(log: Log): void {
  const say = (text: string) => log.warn({ sdk: text.slice(0, 500) }, "OpenTelemetry's SDK warns");
  const silent = () => {};
  const logger = { error: say, warn: say, info: silent, debug: silent, verbose: silent };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** The configuration comes before `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, and those before the defaults. */
function resourceOf({ config, instanceId }: TelemetryContext, version: string): Resource {
  const ours = { "service.name": "ambit", "service.version": version, "service.instance.id": instanceId };
  const { serviceName } = config;
  const configured = serviceName === undefined ? {} : { "service.name": serviceName };
  return defaultResource()
    .merge(resourceFromAttributes(ours, { schemaUrl }))
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes(configured));
}

function version(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}
