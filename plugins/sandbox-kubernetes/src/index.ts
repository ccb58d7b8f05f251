import { definePlugin } from "@ambit/core/plugin";
import { KubernetesSandbox } from "./backend.js";
import { configSchema } from "./config.js";

export { KubernetesSandbox } from "./backend.js";
export { configSchema, type KubernetesConfig } from "./config.js";

/** Sandboxes in pods of a Kubernetes cluster. */
export default definePlugin({
  name: "sandbox-kubernetes",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("sandbox", new KubernetesSandbox(config)),
});
