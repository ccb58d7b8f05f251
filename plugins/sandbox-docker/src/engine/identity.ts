import type Docker from "dockerode";
import type { DockerConfig } from "../config.js";
import type { Engine } from "./engine.js";

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
