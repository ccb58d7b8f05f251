import { definePlugin } from "@ambit/core/plugin";
import { configSchema, KubernetesSandbox } from "@ambit/sandbox-kubernetes";

/** Pods in a namespace of the tests' own cluster, where every name that ends in ".test" is this host. */
export default definePlugin({
  name: "pods",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add(
      "sandbox",
      new KubernetesSandbox(config, async (name) => (name.endsWith(".test") ? ["127.0.0.1"] : [])),
    ),
});
