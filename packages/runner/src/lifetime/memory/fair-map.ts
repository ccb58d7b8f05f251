interface Entry<Value> {
  readonly value: Value;
  readonly size: number;
}

interface Entries<Value> {
  readonly byKey: Map<string, Entry<Value>>;
  size: number;
}

/**
 * Entries of projects, each project's in the order of use. When they are too large together, the project that has the
 * most loses its oldest one: a project that adds many drops its own, and never those of a project with fewer.
 */
export class FairMap<Value> {
  readonly #projects = new Map<string | undefined, Entries<Value>>();
  #size = 0;

  /** @param maxSize of all entries together, in the unit of their sizes. */
  constructor(readonly maxSize: number) {}

  get(project: string | undefined, key: string): Value | undefined {
    return this.#projects.get(project)?.byKey.get(key)?.value;
  }

  /** Adds it, or moves it to the end. @param size default: 1, so that entries are counted. */
  set(project: string | undefined, key: string, value: Value, size = 1): void {
    this.delete(project, key);
    const entries = this.#projects.get(project) ?? { byKey: new Map<string, Entry<Value>>(), size: 0 };
    entries.byKey.set(key, { value, size });
    entries.size += size;
    this.#projects.set(project, entries);
    this.#size += size;
    while (this.#size > this.maxSize) this.#dropOldest();
  }

  delete(project: string | undefined, key: string): void {
    const entries = this.#projects.get(project);
    const entry = entries?.byKey.get(key);
    if (entries === undefined || entry === undefined) return;
    entries.byKey.delete(key);
    entries.size -= entry.size;
    this.#size -= entry.size;
    if (entries.byKey.size === 0) this.#projects.delete(project);
  }

  /** One project's, the oldest first. */
  *of(project: string | undefined): Iterable<readonly [string, Value]> {
    for (const [key, { value }] of this.#projects.get(project)?.byKey ?? []) yield [key, value];
  }

  #dropOldest(): void {
    let largest: { readonly project: string | undefined; readonly entries: Entries<Value> } | undefined;
    for (const [project, entries] of this.#projects) {
      if (largest === undefined || entries.size > largest.entries.size) largest = { project, entries };
    }
    const [oldest] = largest?.entries.byKey.keys() ?? [];
    if (largest !== undefined && oldest !== undefined) this.delete(largest.project, oldest);
  }
}
