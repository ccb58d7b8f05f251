import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startLoopbackDaytona } from "@ambit/daytona-loopback";
import { dockerEngine } from "@ambit/docker-engine";
import { testCluster } from "@ambit/test-cluster";
import { onTestFinished } from "vitest";
import { emptyFolder, repository, type Server, serve } from "../ambit.js";

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

/** With the plugins of another configuration, and other settings beside them. */
async function serveWith(plugins: string, more: object, env: Record<string, string>): Promise<Server> {
  const file = join(await emptyFolder(), "ambit.config.mjs");
  writeFileSync(
    file,
    `import plugins from ${JSON.stringify(plugins)};
    export default { ...plugins, ...${JSON.stringify(more)} };`,
  );
  return serve(env, ["--config", file]);
}

/** Its sandboxes are `local`, and containers as `runc`. */
export async function serveFromContainers(more: object): Promise<Server> {
  const { socket, image } = dockerEngine();
  return serveWith(pathOf("../docker.config.mjs"), more, {
    TEST_DOCKER_SOCKET: socket,
    TEST_DOCKER_IMAGE: image,
    TEST_DOCKER_RUNTIMES: "runc",
    TEST_DOCKER_DATA: await emptyFolder(),
    TEST_DOCKER_FOLDER: repository,
  });
}

/** Its sandboxes are pods, as `kubernetes`, in a namespace where no policy is enforced. @param own settings of the plugin. */
export async function serveFromPods(more: object, own: object = {}): Promise<Server> {
  const { own: cluster, kubeconfig, image } = await testCluster();
  if (cluster === undefined) throw new Error("this test needs a cluster of its own");
  const namespace = await cluster.createNamespace({}, { enforced: false });
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
    ...own,
  };
  return serveWith(pathOf("../../boundary/pods.config.mjs"), more, { TEST_PODS: JSON.stringify(settings) });
}

/** Its sandboxes are `local`, and those of a loopback Daytona as `daytona`. @param env for servers of the test's forge */
export async function serveFromDaytona(more: object, env?: Record<string, string>): Promise<Server> {
  const daytona = await startLoopbackDaytona({
    startDelayMs: 0,
    snapshots: { agents: { user: "root" } },
    world: [
      { name: "address.example.test", address: "10.99.0.20" },
      { name: "name.example.test" },
      { name: "other.example.test", address: "10.99.0.30" },
    ],
  });
  onTestFinished(() => daytona.close());
  return serveWith(
    pathOf(env === undefined ? "../both-sandboxes.config.mjs" : "../forge/forge.config.mjs"),
    more,
    {
      ...env,
      LOOPBACK_DAYTONA_URL: daytona.apiUrl,
      LOOPBACK_DAYTONA_DATA: await emptyFolder(),
      DAYTONA_API_KEY: daytona.apiKey,
    },
  );
}
