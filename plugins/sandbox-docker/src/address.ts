import type { DockerConfig } from "./config.js";

export function addressOf(
  { engine }: Pick<DockerConfig, "engine">,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return engine ?? (environment.DOCKER_HOST || "unix:///var/run/docker.sock");
}

/** Whether the engine is on this host, judged by its address. */
const isLocal = (config: Pick<DockerConfig, "engine">) => addressOf(config).startsWith("unix://");

/** The most containers that wait for sessions: by default one, and none on the machine of a remote engine. */
export function preparedBy(config: Pick<DockerConfig, "engine" | "prewarm">): number {
  return config.prewarm ?? (isLocal(config) ? 1 : 0);
}

/** Whether sandboxes mount the runner's files: by default where the engine is on this host. */
export function mountsAgents(config: Pick<DockerConfig, "engine" | "agents">): boolean {
  return (config.agents ?? (isLocal(config) ? "mount" : "copy")) === "mount";
}
