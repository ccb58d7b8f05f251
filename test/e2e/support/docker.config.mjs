import { fileURLToPath } from "node:url";

const { TEST_DOCKER_SOCKET, TEST_DOCKER_IMAGE, TEST_DOCKER_RUNTIMES, TEST_DOCKER_DATA, TEST_DOCKER_FOLDER } =
  process.env;

// By its path, also for configurations elsewhere that extend this one: servers share evidence of plugins that have a path.
const docker = fileURLToPath(import.meta.resolve("@ambit/sandbox-docker"));

/** The local sandbox, and one on a Docker engine for each runtime, by its name. Agents are mounted from here. */
export default {
  plugins: [
    "@ambit/sandbox-local",
    ...TEST_DOCKER_RUNTIMES.split(",").map((runtime) => ({
      use: docker,
      config: {
        name: runtime,
        runtime,
        engine: `unix://${TEST_DOCKER_SOCKET}`,
        image: TEST_DOCKER_IMAGE,
        network: "none",
        dataFolder: TEST_DOCKER_DATA,
      },
    })),
    { use: "@ambit/harness-acp", config: { folder: TEST_DOCKER_FOLDER } },
    "@ambit/model-route",
    "@ambit/mcp-http",
    "@ambit/executor-callback",
    "@ambit/executor-code",
    "@ambit/executor-client",
    "@ambit/blobs-folder",
  ],
  probes: { keepAcrossRestarts: true },
};
