import { definePlugin } from "@ambit/core/plugin";
import { DockerSandbox, configSchema as dockerSchema } from "@ambit/sandbox-docker";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";
import { onDaytona } from "../both-sandboxes.config.mjs";

const { TEST_DOCKER_SOCKET, TEST_DOCKER_IMAGE, TEST_DOCKER_RUNTIME, TEST_DOCKER_DATA } = process.env;
const trustedAuthorities = [process.env.TEST_FORGE_AUTHORITY, process.env.TEST_REGISTRY_AUTHORITY].filter(
  Boolean,
);
const lookup = async () => ["127.0.0.1"];

/** The local sandbox, where every name is a server of the test's. */
const local = definePlugin({
  name: "sandbox-local",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("sandbox", new LocalSandbox(config, lookup)),
});
/** The same on a Docker engine, if the test has one. */
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
    { use: local, config: { trustedAuthorities } },
    ...(TEST_DOCKER_SOCKET === undefined ? [] : [onDocker]),
    ...(process.env.LOOPBACK_DAYTONA_URL === undefined ? [] : [onDaytona]),
    "@ambit/harness-acp",
    "@ambit/model-route",
    "@ambit/blobs-folder",
  ],
  probes: { keepAcrossRestarts: true },
  workspace: { allowedRanges: ["127.0.0.0/8"], ...JSON.parse(process.env.TEST_WORKSPACE ?? "{}") },
};
