import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import { probeSpec } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { messageOf } from "@ambit/core";
import { type StartedEngine, startDockerEngine } from "@ambit/docker-engine";
import { configSchema, DockerSandbox } from "@ambit/sandbox-docker";
import type { Need } from "../../goal.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import type { Streams } from "./streams.js";

/** Containers of a real engine, opened by the backend and used by Docker's own command line. */
export interface Containers extends AsyncDisposable {
  open(): Promise<RemoteSandbox>;
  /** `docker exec -i` in the container of a sandbox. */
  exec(sandbox: RemoteSandbox, argv: readonly string[]): Streams;
}

/** @param prewarm maximum number of prepared sandboxes. */
export async function openContainers(
  { socket, image }: Pick<StartedEngine, "socket" | "image">,
  prewarm: number,
  runtime: "runc" | "runsc" = "runc",
): Promise<Containers> {
  const folder = await temporaryFolder();
  const backend = new DockerSandbox(
    configSchema.parse({
      engine: `unix://${socket}`,
      image,
      runtime,
      network: "none",
      dataFolder: folder.path,
      deployment: `bench-${process.pid}-${runtime}-${prewarm}`,
      prewarm,
    }),
  );
  const scope = { signal: new AbortController().signal, defer: () => undefined };
  const env = { ...process.env, DOCKER_HOST: `unix://${socket}` };
  return {
    open: () => backend.open(probeSpec({ network: { mode: "off", rules: [] } }), scope),
    exec: (sandbox, argv) => {
      const id = String(sandbox.evidence["docker.container"]);
      const child = spawn("docker", ["exec", "-i", id, ...argv], { env, stdio: ["pipe", "pipe", "ignore"] });
      return {
        output: Readable.toWeb(child.stdout),
        write: async (bytes) => void child.stdin.write(bytes),
        end: async () => child.kill("SIGKILL"),
      };
    },
    [Symbol.asyncDispose]: async () => {
      await backend.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Starts an engine for the bench. */
export async function openEngine(): Promise<StartedEngine & AsyncDisposable> {
  const engine = await startDockerEngine();
  return { ...engine, [Symbol.asyncDispose]: () => engine.close() };
}

export const dockerEngine: Need = {
  missing: async () => {
    try {
      await (await startDockerEngine()).close();
      return undefined;
    } catch (error) {
      return `no Docker engine runs here: ${messageOf(error)}`;
    }
  },
};
