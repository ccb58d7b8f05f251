import docker from "@ambit/sandbox-docker";

const { TEST_DOCKER_SOCKET, TEST_DOCKER_IMAGE, TEST_DOCKER_OTHER, TEST_DOCKER_DATA } = process.env;

const withImage = (name, image) => ({
  use: docker,
  config: {
    name,
    image,
    engine: `unix://${TEST_DOCKER_SOCKET}`,
    runtime: "runc",
    network: "none",
    dataFolder: TEST_DOCKER_DATA,
  },
});

/** Two images to choose from by their names. */
export default {
  plugins: [
    withImage("first", TEST_DOCKER_IMAGE),
    withImage("second", TEST_DOCKER_OTHER),
    "@ambit/harness-acp",
    "@ambit/model-route",
  ],
};
