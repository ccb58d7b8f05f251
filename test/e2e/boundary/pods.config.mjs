import { definePlugin } from "@ambit/core/plugin";
import { configSchema, KubernetesSandbox } from "@ambit/sandbox-kubernetes";

/** Pods in a namespace of the tests' own cluster, where every name that ends in ".test" is this host. */
const pods = definePlugin({
  name: "pods",
  api: 1,
  config: configSchema,
  register: (registrar, config) =>
    registrar.add(
      "sandbox",
      new KubernetesSandbox(config, async (name) => (name.endsWith(".test") ? ["127.0.0.1"] : [])),
    ),
});

export default {
  plugins: [
    { use: pods, config: JSON.parse(process.env.TEST_PODS) },
    "@ambit/harness-acp",
    "@ambit/model-route",
    "@ambit/mcp-http",
    "@ambit/executor-callback",
    "@ambit/executor-code",
    "@ambit/executor-client",
    "@ambit/blobs-folder",
  ],
};
