import { BoundedAgent } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";
import Docker from "dockerode";
import { addressOf } from "../address.js";
import type { DockerConfig } from "../config.js";

/** A connection to the engine over Docker's API, which Podman also implements. */
export type Engine = Docker;

export const addressFix =
  'set it, or sandbox-docker\'s engine, to "unix:///path/to/docker.sock" or "tcp://host:port"';

/** Connects with the first request. Reads nothing of the environment but `DOCKER_HOST`. */
export function connectTo(config: DockerConfig): Engine {
  const address = addressOf(config);
  const [, socketPath] = /^unix:\/\/(\/.*)$/.exec(address) ?? [];
  // A stream that is attached to a command may be silent for long, so only single requests have a time limit.
  const bounds = { agent: new BoundedAgent() };
  if (socketPath !== undefined) return new Docker(Object.assign(bounds, { socketPath }));
  const [, host, port] = /^tcp:\/\/\[?([^/\s]+?)\]?:(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined) {
    throw new SandboxFailed(`DOCKER_HOST is "${address}": ${addressFix}`);
  }
  return new Docker(Object.assign(bounds, { protocol: "http" as const, host, port: Number(port) }));
}

/** The engine, its parts such as containerd and runc with their versions, its runtimes, and the image. @throws Error */
export async function identityOf(
  engine: Engine,
  { image, runtime }: Pick<DockerConfig, "image" | "runtime">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  // The library's types don't have the option.
  const asked: {
    version(options: object): Promise<Docker.DockerVersion>;
    info(
      options: object,
    ): Promise<{ readonly Runtimes?: object; readonly SecurityOptions?: readonly string[] }>;
  } = engine;
  const named: { inspect(options: object): Promise<{ readonly Id: string }> } = engine.getImage(image);
  const [{ Components = [], KernelVersion }, { Runtimes, SecurityOptions }, { Id }] = await Promise.all([
    asked.version({ abortSignal: signal }),
    asked.info({ abortSignal: signal }),
    named.inspect({ abortSignal: signal }),
  ]);
  return [JSON.stringify([Components, KernelVersion, Runtimes, SecurityOptions, runtime, Id])];
}
