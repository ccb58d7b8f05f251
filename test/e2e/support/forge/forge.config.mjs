import { fileURLToPath } from "node:url";
import { definePlugin } from "@ambit/core/plugin";
import { DockerSandbox, configSchema as dockerSchema } from "@ambit/sandbox-docker";
import { onDaytona } from "../both-sandboxes.config.mjs";
import { lookup, trustedAuthorities } from "./local.plugin.mjs";

const { TEST_DOCKER_SOCKET, TEST_DOCKER_IMAGE, TEST_DOCKER_RUNTIME, TEST_DOCKER_DATA } = process.env;
const local = fileURLToPath(new URL("local.plugin.mjs", import.meta.url));

/** Docker's sandbox, where every name is a server of the test's too, if the test has an engine. */
const docker = definePlugin({
  name: "sandbox-docker",
  api: 1,
  config: dockerSchema,
  register: (registrar, config) => registrar.add("sandbox", new DockerSandbox(config, lookup)),
});
const onDocker = {
  use: docker,
  config: {
    name: TEST_DOCKER_RUNTIME,
    runtime: TEST_DOCKER_RUNTIME,
    engine: `unix://${TEST_DOCKER_SOCKET}`,
    image: TEST_DOCKER_IMAGE,
    network: "none",
    dataFolder: TEST_DOCKER_DATA,
    trustedAuthorities,
  },
};

export default {
  plugins: [
    local,
    ...(TEST_DOCKER_SOCKET === undefined ? [] : [onDocker]),
    ...(process.env.LOOPBACK_DAYTONA_URL === undefined ? [] : [onDaytona]),
    "@ambit/harness-acp",
    "@ambit/model-route",
    "@ambit/blobs-folder",
  ],
  server: { terminals: { enabled: true } },
  probes: { keepAcrossRestarts: true },
  workspace: { allowedRanges: ["127.0.0.0/8"], ...JSON.parse(process.env.TEST_WORKSPACE ?? "{}") },
};
