import { definePlugin } from "@ambit/core/plugin";
import { resolvePrivateHosts } from "@ambit/egress";
import { configSchema } from "./config.js";
import { headersIn, readEnvironment } from "./environment.js";
import { LogObserver } from "./log-observer.js";
import { OpenTelemetryMetrics } from "./metrics-observer.js";
import { TelemetryObserver } from "./observer.js";
import { Telemetry } from "./telemetry.js";

export { configSchema, type TelemetryConfig } from "./config.js";
export { type OtelEnvironment, readEnvironment } from "./environment.js";
export { TelemetryObserver } from "./observer.js";
export { Telemetry } from "./telemetry.js";

export default definePlugin({
  name: "telemetry-opentelemetry",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    const environment = readEnvironment(process.env);
    for (const headers of headersIn(process.env)) registrar.secret(headers, "headers");
    for (const warning of environment.warnings) registrar.log.warn({}, warning);
    const telemetry = new Telemetry(
      resolvePrivateHosts(config, registrar.hasTenants),
      environment,
      registrar.log,
      registrar.upstreamProxy,
    );
    registrar.add("observer", new TelemetryObserver(telemetry));
    if (environment.exported.metrics !== undefined)
      registrar.add("observer", new OpenTelemetryMetrics(telemetry));
    if (environment.exported.logs !== undefined) registrar.add("observer", new LogObserver(telemetry));
  },
});
