import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dockerEngine } from "@ambit/docker-engine";
import { testCluster } from "@ambit/test-cluster";
import { onTestFinished } from "vitest";
import { emptyFolder, repository, type Server, serve } from "../support/ambit.js";

/** With the default plugins, and other settings of the configuration. */
export async function servePreviews(preview: object, more: object = {}): Promise<Server> {
  const file = join(await emptyFolder(), "ambit.config.json");
  writeFileSync(file, JSON.stringify({ extends: "defaults", server: { preview }, ...more }));
  return serve({}, ["--config", file]);
}

/** With the plugins of another configuration. */
async function serveWith(plugins: string, preview: object, env: Record<string, string>): Promise<Server> {
  const file = join(await emptyFolder(), "ambit.config.mjs");
  const whole = `import plugins from ${JSON.stringify(plugins)};
    export default { ...plugins, server: ${JSON.stringify({ preview })} };`;
  writeFileSync(file, whole);
  return serve(env, ["--config", file]);
}

export async function serveFromContainers(preview: object): Promise<Server> {
  const { socket, image } = dockerEngine();
  return serveWith(fileURLToPath(new URL("../support/docker.config.mjs", import.meta.url)), preview, {
    TEST_DOCKER_SOCKET: socket,
    TEST_DOCKER_IMAGE: image,
    TEST_DOCKER_RUNTIMES: "runc",
    TEST_DOCKER_DATA: await emptyFolder(),
    TEST_DOCKER_FOLDER: repository,
  });
}

export async function serveFromPods(preview: object): Promise<Server> {
  const { own, kubeconfig, image } = await testCluster();
  if (own === undefined) throw new Error("this test needs a cluster of its own");
  const namespace = await own.createNamespace({}, { enforced: false });
  onTestFinished(() => namespace.remove());
  const settings = {
    kubeconfig,
    image,
    namespace: namespace.name,
    pull: "Never",
    hostUsers: "require",
    dataFolder: await emptyFolder(),
    scratchMb: 64,
    reserve: { cpus: 0.01, memoryMb: 32 },
  };
  return serveWith(fileURLToPath(new URL("../boundary/pods.config.mjs", import.meta.url)), preview, {
    TEST_PODS: JSON.stringify(settings),
  });
}
