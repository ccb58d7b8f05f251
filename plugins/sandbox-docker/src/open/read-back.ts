import { type Evidence, SandboxFailed } from "@ambit/core/plugin";
import type { ContainerCreateOptions } from "dockerode";
import type { Container } from "./container.js";

/** Settings that implement a limit. Engines ignore those that they can't apply, with only a warning. */
const checked = ["NetworkMode", "ReadonlyRootfs", "Memory", "PidsLimit", "NanoCpus", "Runtime"] as const;

/**
 * Reads back which settings the engine applied.
 *
 * @throws SandboxFailed where that isn't what was asked for.
 */
export async function readBack(
  container: Container,
  { HostConfig: asked = {} }: ContainerCreateOptions,
  signal: AbortSignal,
): Promise<Evidence> {
  const { Id, Image, HostConfig: applied, NetworkSettings } = await container.inspect(signal);
  for (const name of checked) {
    if (asked[name] === undefined || asked[name] === applied[name]) continue;
    throw new SandboxFailed(`The engine was asked for ${name} ${asked[name]}, and applied ${applied[name]}`);
  }
  const networks = Object.keys(NetworkSettings.Networks);
  if (asked.NetworkMode === "none" && networks.some((name) => name !== "none")) {
    throw new SandboxFailed(`The container was to have no network, and is in ${networks.join(", ")}`);
  }
  return {
    "docker.container": Id.slice(0, 12),
    "docker.image": Image,
    "docker.network": String(applied.NetworkMode),
    ...(asked.Memory === undefined ? {} : { "docker.memory": String(applied.Memory) }),
    ...(asked.NanoCpus === undefined ? {} : { "docker.nanoCpus": String(applied.NanoCpus) }),
    "docker.pidsLimit": String(applied.PidsLimit),
  };
}
