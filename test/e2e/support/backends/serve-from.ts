import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startLoopbackDaytona } from "@ambit/daytona-loopback";
import { dockerEngine } from "@ambit/docker-engine";
import { testCluster } from "@ambit/test-cluster";
import { onTestFinished } from "vitest";
import { emptyFolder, repository, type Server, serve } from "../ambit.js";

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

/** A backend of sandboxes, and what its servers share: its platform, and their data. */
export interface Place {
  /** The name of its sandboxes. */
  readonly sandbox: string;
  /** Starts a server there. @param env what it has besides. Default: nothing. */
  start(env?: Record<string, string>): Promise<Server>;
}

/** Settings beside those of a configuration, and plugins besides its own. */
interface More {
  readonly plugins?: readonly string[];
  readonly [setting: string]: unknown;
}

async function placeWith(
  sandbox: string,
  configuration: string,
  { plugins = [], ...settings }: More,
  env: Record<string, string>,
): Promise<Place> {
  const file = join(await emptyFolder(), "ambit.config.mjs");
  writeFileSync(
    file,
    `import configuration from ${JSON.stringify(configuration)};
    const plugins = [...configuration.plugins, ...${JSON.stringify(plugins)}];
    export default { ...configuration, ...${JSON.stringify(settings)}, plugins };`,
  );
  return { sandbox, start: (own = {}) => serve({ ...env, ...own }, ["--config", file]) };
}

/** Its sandboxes are `local`, and containers as `runc`. */
export async function containers(more: More): Promise<Place> {
  const { socket, image } = dockerEngine();
  return placeWith("runc", pathOf("../docker.config.mjs"), more, {
    TEST_DOCKER_SOCKET: socket,
    TEST_DOCKER_IMAGE: image,
    TEST_DOCKER_RUNTIMES: "runc",
    TEST_DOCKER_DATA: await emptyFolder(),
    TEST_DOCKER_FOLDER: repository,
  });
}

/** Its sandboxes are pods, as `kubernetes`, in a namespace where no policy is enforced. @param own settings of the plugin. */
export async function pods(more: More, own: object = {}): Promise<Place> {
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
  return placeWith("kubernetes", pathOf("../../boundary/pods.config.mjs"), more, {
    TEST_PODS: JSON.stringify(settings),
  });
}

/** Its sandboxes are `local`, and those of a loopback Daytona as `daytona`. @param env for servers of the test's forge */
export async function loopbackDaytona(more: More, env?: Record<string, string>): Promise<Place> {
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
  const plugins = env === undefined ? "../both-sandboxes.config.mjs" : "../forge/forge.config.mjs";
  return placeWith("daytona", pathOf(plugins), more, {
    ...env,
    LOOPBACK_DAYTONA_URL: daytona.apiUrl,
    LOOPBACK_DAYTONA_DATA: await emptyFolder(),
    DAYTONA_API_KEY: daytona.apiKey,
  });
}

export async function serveFromContainers(more: More): Promise<Server> {
  return (await containers(more)).start();
}

export async function serveFromPods(...how: Parameters<typeof pods>): Promise<Server> {
  return (await pods(...how)).start();
}

export async function serveFromDaytona(...how: Parameters<typeof loopbackDaytona>): Promise<Server> {
  return (await loopbackDaytona(...how)).start();
}
