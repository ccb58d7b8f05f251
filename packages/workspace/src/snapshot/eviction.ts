/** A kept snapshot, as its file says. */
export interface KeptEntry {
  readonly path: string;
  readonly project: string;
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly usedAt: number;
}

export interface EvictionLimits {
  readonly maxSnapshots: number;
  readonly maxBytes: number;
  /** Milliseconds since 1970: what wasn't used since goes. */
  readonly before: number;
}

/**
 * Those that must go: what wasn't used for too long, and while there is too much, the least recently used of the project that
 * has most, so that no project takes the others' room. Pure.
 * @param newest stays, by its path.
 */
export function evicted(
  all: readonly KeptEntry[],
  newest: string,
  { maxSnapshots, maxBytes, before }: EvictionLimits,
): readonly KeptEntry[] {
  const gone: KeptEntry[] = [];
  const projects = new Map<string, { bytes: number; readonly entries: KeptEntry[] }>();
  let left = { bytes: 0, count: 0 };
  for (const entry of [...all].sort((one, other) => one.usedAt - other.usedAt)) {
    if (entry.path !== newest && entry.usedAt < before) {
      gone.push(entry);
      continue;
    }
    const project = projects.get(entry.project) ?? { bytes: 0, entries: [] };
    projects.set(entry.project, project);
    project.bytes += entry.bytes;
    if (entry.path !== newest) project.entries.push(entry);
    left = { bytes: left.bytes + entry.bytes, count: left.count + 1 };
  }
  while (left.count > maxSnapshots || left.bytes > maxBytes) {
    const [largest] = [...projects.values()]
      .filter(({ entries }) => entries.length > 0)
      .sort((one, other) => other.bytes - one.bytes);
    const victim = largest?.entries.shift();
    if (largest === undefined || victim === undefined) break;
    largest.bytes -= victim.bytes;
    left = { bytes: left.bytes - victim.bytes, count: left.count - 1 };
    gone.push(victim);
  }
  return gone;
}
