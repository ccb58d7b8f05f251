import { execFile } from "node:child_process";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { StartedEngine } from "@ambit/docker-engine";
import { agentsFolder } from "../../floors/agent-launch.js";
import { type CpuMeter, cpuOfGroup, meterGroup } from "../../machine/cpu-meter.js";
import { processesWith } from "../../machine/processes.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";

const execute = promisify(execFile);
const modules = join(agentsFolder, "node_modules");
const inside = "/opt/agents/node_modules";
const waiting = "while :; do sleep 1000000 & wait $!; done";

/** The containers in which both sides run their agents. */
export interface DockerPlace {
  readonly socket: string;
  readonly image: string;
  /** The running container, with this host's network, in which the ACP SDK's agent is started. */
  readonly container: string;
  /** A folder that is mounted in the container at the same path. */
  readonly folder: string;
  /** Number of sandboxes that Ambit prepares. */
  readonly prewarm: number;
}

/** A running container with the agents, in which they are started without Ambit. */
export interface AgentContainer extends AsyncDisposable {
  readonly id: string;
  /** The folder, mounted at the same path. */
  readonly folder: string;
  /** Ends all processes but the container's first: `docker exec` leaves what it started. */
  clean(): Promise<void>;
}

export async function openAgentContainer({ socket, image }: StartedEngine): Promise<AgentContainer> {
  const folder = await temporaryFolder();
  const docker = async (...args: string[]) => {
    const env = { PATH: process.env.PATH ?? "", DOCKER_HOST: `unix://${socket}` };
    return (await execute("docker", args, { env })).stdout.trim();
  };
  const volumes = ["--volume", `${modules}:${modules}:ro`, "--volume", `${folder.path}:${folder.path}`];
  const id = await docker(
    ...["run", "--detach", "--network", "host", "--runtime", "runc", ...volumes],
    ...["--entrypoint", "/bin/sh", image, "-c", waiting],
  );
  return {
    id,
    folder: folder.path,
    clean: async () => void (await docker("exec", id, "/bin/sh", "-c", "kill -KILL -1")),
    [Symbol.asyncDispose]: async () => {
      await docker("rm", "--force", id);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The sandbox plugin's entry in a configuration; its containers have the agents. */
export function agentsInside({ socket, image, folder, prewarm }: DockerPlace) {
  return {
    use: fileURLToPath(import.meta.resolve("@ambit/sandbox-docker")),
    config: {
      engine: `unix://${socket}`,
      image,
      runtime: "runc",
      network: "none",
      prewarm,
      dataFolder: join(folder, "docker"),
      deployment: `bench-${process.pid}`,
      mounts: [{ source: modules, target: inside }],
      searchPath: `${inside}/.bin:/usr/local/bin:/usr/bin:/bin`,
    },
  };
}

/** CPU of an engine with its containers. Undefined without control groups, or if the bench didn't start the engine. */
export function meterEngine({ socket }: StartedEngine): CpuMeter | undefined {
  const folder = dirname(socket);
  const containers = cpuOfGroup(basename(folder));
  const engine = meterGroup(processesWith(folder).map(({ pid }) => pid));
  if (containers === undefined || engine === undefined) return undefined;
  return { ms: () => engine.ms() + containers(), close: () => engine.close() };
}
