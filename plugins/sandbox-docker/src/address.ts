import type { DockerConfig } from "./config.js";

export function addressOf(
  { engine }: Pick<DockerConfig, "engine">,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return engine ?? (environment.DOCKER_HOST || "unix:///var/run/docker.sock");
}

/** Whether sandboxes mount the runner's files: by default where the engine is on this host, judged by its address. */
export function mountsAgents(config: Pick<DockerConfig, "engine" | "agents">): boolean {
  return (config.agents ?? (addressOf(config).startsWith("unix://") ? "mount" : "copy")) === "mount";
}
