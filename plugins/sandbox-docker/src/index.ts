import { definePlugin } from "@ambit/core/plugin";
import { DockerSandbox } from "./backend.js";
import { configSchema } from "./config.js";

export { DockerSandbox } from "./backend.js";
export { configSchema, type DockerConfig } from "./config.js";

/** Sandboxes in containers of a Docker or Podman engine. */
export default definePlugin({
  name: "sandbox-docker",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("sandbox", new DockerSandbox(config)),
});
