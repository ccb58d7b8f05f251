import { secret } from "@ambit/core/contract";
import { isRange } from "@ambit/egress";
import { z } from "zod";

const rangeSchema = z
  .string()
  .refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8");

const endpointSchema = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

export const configSchema = z.strictObject({
  /**
   * Where traces go whose request names no endpoint: OTLP over HTTP, `http://127.0.0.1:4318` or the whole path
   * (`…/v1/traces`). Default: where OpenTelemetry's own variables say (`OTEL_EXPORTER_OTLP_ENDPOINT`…), else nowhere.
   */
  endpoint: secret(endpointSchema, "url").optional(),
  /** Sent with each export to `endpoint`, and to no endpoint of a request: a collector's token. Default none. */
  headers: secret(z.record(z.string(), z.string()), "headers").default({}),
  /** Whether a request's `telemetry.exporters.otlp` counts. Default `allow`; `ignore`: all traces go to `endpoint`. */
  requestEndpoints: z.enum(["allow", "ignore"]).default("allow"),
  /**
   * Whether a request's endpoint may lead to a private or loopback address, or to one of this host's. Default `auto`:
   * `refuse` on a server with tenants, else `allow`, since platforms are usually neighbours. Link-local and metadata
   * addresses are always refused.
   */
  privateHosts: z.enum(["allow", "refuse", "auto"]).default("auto"),
  /** Further ranges that a request's endpoint may lead to. Default none. */
  allowedRanges: z.array(rangeSchema).default([]),
  /** The resource's `service.name`. Default: that of OpenTelemetry's variables, else `ambit`. */
  serviceName: z.string().min(1).optional(),
});

export type TelemetryConfig = z.output<typeof configSchema>;
