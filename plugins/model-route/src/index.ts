import { definePlugin } from "@ambit/core/plugin";
import { resolvePrivateHosts } from "@ambit/egress";
import { configSchema } from "./config.js";
import { ModelRouteGateway } from "./gateway.js";

export { configSchema, type ModelRouteConfig } from "./config.js";
export { ModelRouteGateway } from "./gateway.js";

export default definePlugin({
  name: "model-route",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add(
      "gateway",
      new ModelRouteGateway(
        resolvePrivateHosts(config, registrar.hasTenants),
        undefined,
        registrar.upstreamProxy,
      ),
    ),
});
