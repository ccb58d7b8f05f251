import { probeSpec } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { type StartedEngine, startDockerEngine } from "@ambit/docker-engine";
import { configSchema, DockerSandbox } from "@ambit/sandbox-docker";
import { temporaryFolder } from "../../machine/temporary-folder.js";

/** Containers of a real engine, opened by the backend. */
export interface Containers extends AsyncDisposable {
  open(): Promise<RemoteSandbox>;
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
  return {
    open: () => backend.open(probeSpec({ network: { mode: "off", rules: [] } }), scope),
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
