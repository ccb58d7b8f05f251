import { definePlugin } from "@ambit/core/plugin";
import { resolvePrivateHosts } from "@ambit/egress";
import { configSchema } from "./config.js";
import { CallbackExecutor } from "./executor.js";

export { type CallbackConfig, configSchema } from "./config.js";
export { CallbackExecutor } from "./executor.js";

export default definePlugin({
  name: "executor-callback",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add(
      "executor",
      new CallbackExecutor(
        resolvePrivateHosts(config, registrar.hasTenants),
        undefined,
        registrar.upstreamProxy,
      ),
    ),
});
