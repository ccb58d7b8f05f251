import { type Evidence, SandboxFailed } from "@ambit/core/plugin";
import type { ContainerCreateOptions, ContainerInspectInfo } from "dockerode";

/** Settings that implement a limit. Engines ignore those that they can't apply, with only a warning. */
const checked = ["NetworkMode", "ReadonlyRootfs", "Memory", "PidsLimit", "NanoCpus", "Runtime"] as const;

/**
 * Reads back which settings the engine applied.
 *
 * @throws SandboxFailed where that isn't what was asked for.
 */
export function readBack(
  { Id, Image, State, HostConfig: applied, NetworkSettings }: ContainerInspectInfo,
  { HostConfig: asked = {} }: ContainerCreateOptions,
): Evidence {
  if (!State.Running) {
    throw new SandboxFailed(`The container's first command ended with exit code ${State.ExitCode}`);
  }
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

/** Where the image's own volumes are mounted: processes could write to them whatever the boundary says. */
export function unaskedVolumes(
  { Mounts }: Pick<ContainerInspectInfo, "Mounts">,
  { HostConfig: asked = {} }: ContainerCreateOptions,
): readonly string[] {
  const targets = (asked.Mounts ?? []).map(({ Target }) => Target);
  const found = Mounts.filter(({ Type }) => Type === "volume").map(({ Destination }) => Destination);
  return found.filter((path) => !targets.includes(path));
}
