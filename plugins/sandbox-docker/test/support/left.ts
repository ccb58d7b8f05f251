import { dockerEngine } from "@ambit/docker-engine";
import Docker from "dockerode";

/** What a deployment has on the test run's engine: its containers, and the volumes that they had. */
export class Left {
  readonly #docker = new Docker({ socketPath: dockerEngine().socket });
  readonly #deployment: string;
  readonly #volumes = new Set<string>();

  constructor(deployment: string) {
    this.#deployment = deployment;
  }

  /** The sessions that have a container in any state. */
  async sessions(): Promise<readonly string[]> {
    const filters = { label: [`ambit-deployment=${this.#deployment}`] };
    const found = await this.#docker.listContainers({ all: true, filters });
    for (const { Mounts } of found) {
      for (const { Type, Name } of Mounts)
        if (Type === "volume" && Name !== undefined) this.#volumes.add(Name);
    }
    return found.map(({ Labels }) => Labels["ambit-session"] ?? "").sort();
  }

  /** Existing or removed containers. */
  async volumes(): Promise<readonly string[]> {
    const { Volumes } = await this.#docker.listVolumes();
    return Volumes.map(({ Name }) => Name).filter((name) => this.#volumes.has(name));
  }

  /** How many volumes were seen. */
  get seen(): number {
    return this.#volumes.size;
  }

  /** @param options `v`: with its volumes. */
  async remove(session: string, { v }: { readonly v: boolean } = { v: true }): Promise<void> {
    const filters = { label: [`ambit-session=${session}`] };
    for (const { Id } of await this.#docker.listContainers({ all: true, filters }))
      await this.#docker.getContainer(Id).remove({ force: true, v });
  }
}
