import { definePlugin } from "@ambit/core/plugin";
import { LocalSandbox } from "./backend.js";
import { configSchema } from "./config.js";

export { LocalSandbox } from "./backend.js";
export { configSchema, type LocalConfig } from "./config.js";

/** Sandboxes on this host, confined by bubblewrap if the host can. */
export default definePlugin({
  name: "sandbox-local",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("sandbox", new LocalSandbox(config)),
});
