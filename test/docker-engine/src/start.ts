import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { loadSandboxImage, sandboxImageName } from "@ambit/sandbox-image";
import { imageArchive, removeCgroups } from "@ambit/test-machine";
import Docker from "dockerode";
import { type Daemon, startDaemon } from "./daemon.js";
import { type DockerEngine, runtimes } from "./engine.js";
import { bridgesOf, createFolder, removeBridges, removeLeftovers } from "./leftovers.js";
import { runtimeFailure } from "./runtimes.js";

/** A separate engine. */
export interface StartedEngine extends DockerEngine {
  /** Ends the engine with everything in it, and removes its data. Does nothing to an engine that was already running. */
  close(): Promise<void>;
}

/** The address of an engine that is already running. */
const foundSocket = "/var/run/docker.sock";

/**
 * Starts an engine, or finds one where none can be started, and gives it the default sandbox image.
 *
 * @throws Error with the reason and the fix.
 */
export async function startDockerEngine(): Promise<StartedEngine> {
  const lacking = whyNotStarted();
  if (lacking === undefined) return await startOwn();
  if (!existsSync(foundSocket)) throw new Error(lacking);
  return await prepare(foundSocket, { sandboxes: "ambit-tests", compose: "ambit-compose" }, async () => {});
}

function whyNotStarted(): string | undefined {
  if (process.platform !== "linux") return "a Docker engine of its own needs Linux";
  if (process.getuid?.() !== 0) return "a Docker engine of its own needs root";
  if (existsSync("/usr/sbin/dockerd") || existsSync("/usr/bin/dockerd")) return undefined;
  return "dockerd is missing: apt-get install docker.io runsc mmdebstrap";
}

async function startOwn(): Promise<StartedEngine> {
  await removeLeftovers();
  const { folder, name } = await createFolder();
  let daemon: Daemon | undefined;
  const close = async () => {
    await daemon?.stop();
    await removeCgroups(name);
    await removeBridges(name);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    daemon = await startDaemon(folder, name);
    return await prepare(daemon.socket, bridgesOf(name), close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepare(
  socket: string,
  bridges: StartedEngine["bridges"],
  close: () => Promise<void>,
): Promise<StartedEngine> {
  const docker = new Docker({ socketPath: socket });
  const image = sandboxImageName();
  const hasImage = await docker
    .getImage(image)
    .inspect()
    .then(
      () => true,
      (error) => {
        if (error.statusCode === 404) return false;
        throw error;
      },
    );
  if (!hasImage) await loadSandboxImage(await imageArchive(), { engine: `unix://${socket}` });
  const tried = await Promise.all(
    runtimes.map(async (runtime) => [runtime, await runtimeFailure(docker, image, runtime)] as const),
  );
  return {
    socket,
    image,
    bridges,
    failures: { runc: null, runsc: null, ...Object.fromEntries(tried) },
    close,
  };
}
