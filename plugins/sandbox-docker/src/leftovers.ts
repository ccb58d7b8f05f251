import { type Leftover, labelsOfDeployment, ownershipOf, signalWithin } from "@ambit/backend-kit";
import type { DockerConfig } from "./config.js";
import type { Engine } from "./engine/engine.js";
import { asSandboxFailed, statusOf } from "./engine/engine.js";
import { removeContainer } from "./open/container.js";
import { nameOf } from "./open/container-options.js";

/** The deployment's containers, whatever their state, and the volumes that no container has any more. */
export async function* leftoversOn(engine: Engine, config: DockerConfig): AsyncIterable<Leftover> {
  const label = Object.entries(labelsOfDeployment(config.deployment)).map(
    ([name, value]) => `${name}=${value}`,
  );
  const abortSignal = signalWithin(config.requestTimeoutMs);
  for (const { Id, Names, Labels } of await engine.listContainers({
    all: true,
    filters: { label },
    abortSignal,
  })) {
    const name = Names[0]?.slice(1) ?? Id;
    const owner = ownershipOf(Labels);
    // One of an image that was committed from a sandbox has the sandbox's labels, and another name.
    if (owner === undefined || nameOf(owner) !== name) continue;
    yield {
      name,
      owner,
      remove: () => removeContainer(engine.getContainer(Id), config),
    };
  }
  const unused = {
    filters: { label, dangling: ["true"] },
    abortSignal: signalWithin(config.requestTimeoutMs),
  };
  for (const { Name, Labels } of (await engine.listVolumes(unused)).Volumes ?? []) {
    yield { name: Name, owner: ownershipOf(Labels ?? {}), remove: () => removeVolume(engine, Name, config) };
  }
}

async function removeVolume(engine: Engine, name: string, config: DockerConfig): Promise<void> {
  try {
    await engine.getVolume(name).remove({ abortSignal: signalWithin(config.requestTimeoutMs) });
  } catch (error) {
    if (statusOf(error) !== 404) throw asSandboxFailed(error, `remove the volume ${name}`, config);
  }
}
