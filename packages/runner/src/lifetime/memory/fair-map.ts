/**
 * Entries of projects, each project's in the order of use. When there are too many, the project that has the most loses
 * its oldest one: a project that adds many drops its own, and never those of a project with fewer.
 */
export class FairMap<Value> {
  readonly #projects = new Map<string | undefined, Map<string, Value>>();
  #size = 0;

  constructor(readonly maxEntries: number) {}

  get(project: string | undefined, key: string): Value | undefined {
    return this.#projects.get(project)?.get(key);
  }

  /** Adds it, or moves it to the end. */
  set(project: string | undefined, key: string, value: Value): void {
    this.delete(project, key);
    const entries = this.#projects.get(project) ?? new Map<string, Value>();
    entries.set(key, value);
    this.#projects.set(project, entries);
    this.#size += 1;
    if (this.#size > this.maxEntries) this.#dropOldest();
  }

  delete(project: string | undefined, key: string): void {
    const entries = this.#projects.get(project);
    if (entries?.delete(key) !== true) return;
    this.#size -= 1;
    if (entries.size === 0) this.#projects.delete(project);
  }

  /** One project's, the oldest first. */
  of(project: string | undefined): Iterable<readonly [string, Value]> {
    return this.#projects.get(project) ?? [];
  }

  #dropOldest(): void {
    const [first] = this.#projects;
    if (first === undefined) return;
    let largest = first;
    for (const one of this.#projects) if (one[1].size > largest[1].size) largest = one;
    const [project, entries] = largest;
    const [oldest] = entries.keys();
    if (oldest !== undefined) this.delete(project, oldest);
  }
}
