import type { Trouble } from "./status.js";

/** What keeps pods from starting, as far as the cluster has said. */
export class StartingPods {
  readonly #troubles = new Map<string, Trouble>();

  /** @param trouble undefined: nothing does, or the pod runs or was given up. */
  note(pod: string, trouble: Trouble | undefined): void {
    if (trouble === undefined) this.#troubles.delete(pod);
    else this.#troubles.set(pod, trouble);
  }

  /** The first of them. */
  get trouble(): Trouble | undefined {
    return this.#troubles.values().next().value;
  }
}
