import { definePlugin } from "@ambit/core/plugin";
import { DaytonaSandbox } from "./backend.js";
import { configSchema } from "./config.js";

export { DaytonaSandbox } from "./backend.js";
export { configSchema, type DaytonaConfig } from "./config.js";

/** Sandboxes on Daytona (API v0). */
export default definePlugin({
  name: "sandbox-daytona",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    registrar.secret(process.env[config.apiKeyVariable]);
    registrar.add("sandbox", new DaytonaSandbox(config));
  },
});
