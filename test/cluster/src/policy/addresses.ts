import { watch } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** Where containerd keeps what the network's plugins answered: a file for each pod, written before its first process. */
const results = "/var/lib/cni/results";

const resultSchema = z.object({
  cniArgs: z.array(z.tuple([z.string(), z.string()])),
  result: z.object({ ips: z.array(z.object({ address: z.string() })) }),
});

export interface Attached {
  readonly namespace: string;
  readonly name: string;
  readonly address: string;
}

/** The addresses of this node's pods, from the moment in which each gets its own. */
export class PodAddresses {
  readonly #changed: () => void;
  #known = new Map<string, Attached>();
  #reading: Promise<void> = Promise.resolve();

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  start(): void {
    watch(results, () => {
      this.#reading = this.#reading.then(() => this.#read());
    });
    this.#reading = this.#read();
  }

  get all(): readonly Attached[] {
    return [...this.#known.values()];
  }

  async #read(): Promise<void> {
    const names = (await readdir(results)).filter((name) => name.endsWith("-eth0"));
    const known = new Map<string, Attached>();
    let hasChanged = false;
    for (const name of names) {
      const old = this.#known.get(name);
      const found = old ?? (await this.#attached(name));
      if (found === undefined) continue;
      known.set(name, found);
      if (old === undefined) hasChanged = true;
    }
    hasChanged ||= known.size !== this.#known.size;
    this.#known = known;
    if (hasChanged) this.#changed();
  }

  /** Undefined while the file is being written, or if it is gone: a further change tells. */
  async #attached(file: string): Promise<Attached | undefined> {
    try {
      const { cniArgs, result } = resultSchema.parse(JSON.parse(await readFile(join(results, file), "utf8")));
      const args = new Map(cniArgs);
      const [name, namespace] = [args.get("K8S_POD_NAME"), args.get("K8S_POD_NAMESPACE")];
      const address = result.ips[0]?.address.split("/")[0];
      if (name === undefined || namespace === undefined || address === undefined) return undefined;
      return { name, namespace, address };
    } catch {
      return undefined;
    }
  }
}
