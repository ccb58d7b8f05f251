import type { Warning } from "@ambit/core/contract";

/** Warnings that a result carries at most: what an agent's behaviour causes has no other limit. */
export const mostWarnings = 100;

/** What the caller is warned of, each thing once, in the order in which it was found. */
export class Warnings {
  readonly #found = new Map<string, Warning>();

  constructor(found: readonly Warning[] = []) {
    for (const warning of found) this.add(warning);
  }

  add(warning: Warning): void {
    if (this.#found.size < mostWarnings)
      this.#found.set(JSON.stringify([warning.path, warning.message]), warning);
  }

  /** Undefined when there are none: the result then has no such field. */
  get list(): Warning[] | undefined {
    return this.#found.size === 0 ? undefined : [...this.#found.values()];
  }
}
