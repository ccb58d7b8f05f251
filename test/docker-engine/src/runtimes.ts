import type Docker from "dockerode";
import type { Runtime } from "./engine.js";

const trialTimeoutMs = 20_000;

/** Runs Node in a container. Resolves with null if it ran, else with the reason. */
export async function runtimeFailure(
  docker: Docker,
  image: string,
  runtime: Runtime,
): Promise<string | null> {
  let container: Docker.Container | undefined;
  try {
    container = await docker.createContainer({
      Image: image,
      Cmd: ["node", "--eval", "process.exit(42)"],
      HostConfig: { Runtime: runtime, NetworkMode: "none" },
      abortSignal: AbortSignal.timeout(trialTimeoutMs),
    });
    await container.start();
    const { StatusCode } = await container.wait({ abortSignal: AbortSignal.timeout(trialTimeoutMs) });
    return StatusCode === 42 ? null : `Node ended with exit code ${StatusCode} in a container of ${runtime}`;
  } catch (error) {
    return `no container of ${runtime} starts: ${error instanceof Error ? error.message : error}`;
  } finally {
    await container?.remove({ force: true }).catch(() => {});
  }
}
