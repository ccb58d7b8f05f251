import type { RunRequest } from "@ambit/core/plugin";
import type { TelemetryConfig } from "./config.js";

/** An endpoint that the configuration or a request names. Holds credentials: never logged. */
export interface HttpDestination {
  /** With its path: `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A caller named it, so its address is checked before a connection is made. */
  readonly isCallers: boolean;
}

/** Where one run's trace goes: to an endpoint, or to the one that OpenTelemetry's variables name. */
export type ExportDestination = HttpDestination | "environment";

/** The request's own endpoint, else the operator's; undefined when there is neither. Pure. */
export function destinationOf(
  request: Pick<RunRequest, "telemetry">,
  config: TelemetryConfig,
  isInEnvironment: boolean,
): ExportDestination | undefined {
  const requested = request.telemetry?.exporters?.otlp;
  if (requested?.endpoint !== undefined && config.requestEndpoints === "allow")
    return { url: tracesUrl(requested.endpoint), headers: requested.headers ?? {}, isCallers: true };
  return operatorsDestination(config, isInEnvironment);
}

/** The configured endpoint comes before OpenTelemetry's variables. Pure. */
export function operatorsDestination(
  config: TelemetryConfig,
  isInEnvironment: boolean,
): ExportDestination | undefined {
  if (config.endpoint !== undefined)
    return { url: tracesUrl(config.endpoint), headers: config.headers, isCallers: false };
  return isInEnvironment ? "environment" : undefined;
}

/** The signal's path is appended to a base URL, as OTLP/HTTP says; a URL that has it is taken as it is. Pure. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url.href;
}
