import { fileURLToPath } from "node:url";

const { LOOPBACK_DAYTONA_URL, LOOPBACK_DAYTONA_DATA } = process.env;

/** Sandboxes of a loopback Daytona, whose key is in DAYTONA_API_KEY. */
export const onDaytona = {
  // Servers share evidence of plugins that have a path.
  use: fileURLToPath(import.meta.resolve("@ambit/sandbox-daytona")),
  config: {
    apiUrl: LOOPBACK_DAYTONA_URL,
    snapshot: "agents",
    dataFolder: LOOPBACK_DAYTONA_DATA,
    canary: {
      address: "10.99.0.20:80",
      name: "name.example.test:80",
      forbidden: ["other.example.test:80"],
      attemptMs: 2_000,
    },
  },
};

/** Two sandboxes to choose from by name. */
export default {
  plugins: [
    "@ambit/sandbox-local",
    onDaytona,
    "@ambit/harness-acp",
    "@ambit/mcp-http",
    "@ambit/executor-callback",
    "@ambit/executor-code",
    "@ambit/executor-client",
    "@ambit/blobs-folder",
  ],
  probes: { keepAcrossRestarts: true },
};
