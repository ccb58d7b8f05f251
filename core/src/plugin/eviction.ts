/** Something that is kept for a project as long as there is room, such as a prepared environment. */
export interface KeptEntry {
  /** Unique among all entries. */
  readonly name: string;
  readonly project: string;
  /** When it was used last, or made, in milliseconds since 1970. */
  readonly usedAt: number;
  /** Default: entries are only counted. */
  readonly bytes?: number;
}

export interface RetentionLimits {
  /** The most entries that stay. */
  readonly max: number;
  /** The most bytes that stay. Default: any number. */
  readonly maxBytes?: number;
  /** Milliseconds since 1970: entries that were used before this moment are removed. */
  readonly before: number;
  /** The name of an entry that stays in any case. */
  readonly newest?: string;
}

/**
 * The names of the entries to remove: those that weren't used for too long, and while there are too many, the least recently
 * used of the project that has most, so that no project takes the others' room. Pure.
 */
export function entriesToRemove(
  entries: readonly KeptEntry[],
  { max, maxBytes = Number.POSITIVE_INFINITY, before, newest }: RetentionLimits,
): readonly string[] {
  const oldestFirst = entries.toSorted((earlier, later) => earlier.usedAt - later.usedAt);
  const isStale = ({ name, usedAt }: KeptEntry) => usedAt < before && name !== newest;
  const removed = oldestFirst.filter(isStale).map(({ name }) => name);
  const remaining = oldestFirst.filter((entry) => !isStale(entry));
  const sizes = new Map<string, number>();
  for (const { project, bytes = 1 } of remaining) sizes.set(project, (sizes.get(project) ?? 0) + bytes);
  let totalBytes = remaining.reduce((sum, { bytes = 1 }) => sum + bytes, 0);
  while (remaining.length > max || totalBytes > maxBytes) {
    let victim: KeptEntry | undefined;
    const sizeOf = ({ project }: KeptEntry) => sizes.get(project) ?? 0;
    for (const entry of remaining)
      if (entry.name !== newest && (victim === undefined || sizeOf(entry) > sizeOf(victim))) victim = entry;
    if (victim === undefined) break;
    const { name, project, bytes = 1 } = victim;
    remaining.splice(remaining.indexOf(victim), 1);
    sizes.set(project, sizeOf(victim) - bytes);
    totalBytes -= bytes;
    removed.push(name);
  }
  return removed;
}
