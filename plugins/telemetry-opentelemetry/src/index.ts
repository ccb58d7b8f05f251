import { definePlugin } from "@ambit/core/plugin";
import { settlePrivateHosts } from "@ambit/egress";
import { configSchema } from "./config.js";
import { TelemetryObserver } from "./observer.js";

export { configSchema, type TelemetryConfig } from "./config.js";
export { TelemetryObserver } from "./observer.js";

export default definePlugin({
  name: "telemetry-opentelemetry",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add("observer", new TelemetryObserver(settlePrivateHosts(config, registrar.hasTenants))),
});
