import { type Leftover, labelsOfDeployment, ownershipOf } from "@ambit/backend-kit";
import type { DockerConfig } from "./config.js";
import { type Engine, within } from "./engine/engine.js";
import { removeContainer } from "./open/container.js";

/** The deployment's containers, whatever their state. Their volumes go with them. */
export async function* leftoversOn(engine: Engine, config: DockerConfig): AsyncIterable<Leftover> {
  const label = Object.entries(labelsOfDeployment(config.deployment)).map(
    ([name, value]) => `${name}=${value}`,
  );
  const all = { all: true, filters: { label }, abortSignal: within(config) };
  for (const { Id, Names, Labels } of await engine.listContainers(all)) {
    const name = Names[0]?.slice(1) ?? Id;
    yield {
      name,
      owner: ownershipOf(Labels),
      remove: () => removeContainer(engine.getContainer(Id), config),
    };
  }
}
