import { fileURLToPath } from "node:url";

// Servers share evidence of plugins that have a path.
const pods = fileURLToPath(new URL("pods.plugin.mjs", import.meta.url));

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
  probes: { keepAcrossRestarts: true },
};
