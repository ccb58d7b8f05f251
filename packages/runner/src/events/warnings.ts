import type { Warning } from "@ambit/core/contract";

/** Warnings of one result at most. Those that an agent's behaviour causes have no other limit. */
export const maxWarnings = 100;

/** The warnings for the caller, without duplicates, in the order in which they were found. */
export class Warnings {
  readonly #found = new Map<string, Warning>();

  constructor(found: readonly Warning[] = []) {
    for (const warning of found) this.add(warning);
  }

  add(warning: Warning): void {
    if (this.#found.size < maxWarnings)
      this.#found.set(JSON.stringify([warning.path, warning.message]), warning);
  }

  /** Undefined when there are none: the result then has no such field. */
  get list(): Warning[] | undefined {
    return this.#found.size === 0 ? undefined : [...this.#found.values()];
  }
}
