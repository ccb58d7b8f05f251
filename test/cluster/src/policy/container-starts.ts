import { watch } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** Where containerd keeps what it runs: a folder for each container, made just before its first process. */
const tasks = "/run/ambit-containerd/io.containerd.runtime.v2.task/k8s.io";

const cri = "io.kubernetes.cri";
const specSchema = z.object({ annotations: z.record(z.string(), z.string()).default({}) });

/** Reports each pod whose first container starts. */
export class ContainerStarts {
  readonly #started: (namespace: string, pod: string) => void;
  #known = new Set<string>();
  #reading: Promise<void> = Promise.resolve();

  constructor(started: (namespace: string, pod: string) => void) {
    this.#started = started;
  }

  async start(): Promise<void> {
    await mkdir(tasks, { recursive: true });
    watch(tasks, () => {
      this.#reading = this.#reading.then(() => this.#read());
    });
  }

  async #read(): Promise<void> {
    const ids = await readdir(tasks);
    for (const id of ids.filter((one) => !this.#known.has(one))) await this.#report(id);
    this.#known = new Set(ids);
  }

  async #report(id: string): Promise<void> {
    // Its description follows a moment after the folder, and is gone if the container has ended already.
    for (let attempt = 0; attempt < 50; attempt++) {
      try {
        const { annotations } = specSchema.parse(
          JSON.parse(await readFile(join(tasks, id, "config.json"), "utf8")),
        );
        const [namespace, pod] = [
          annotations[`${cri}.sandbox-namespace`],
          annotations[`${cri}.sandbox-name`],
        ];
        if (annotations[`${cri}.container-type`] !== "container") return;
        if (namespace !== undefined && pod !== undefined) this.#started(namespace, pod);
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    }
  }
}
