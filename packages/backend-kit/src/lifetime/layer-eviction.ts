/** A layer that a platform keeps (`SandboxBackend.layers`). */
export interface LayerAge {
  /** The platform's. */
  readonly name: string;
  /** Whose it is: the first characters of the layer's name. */
  readonly project: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** The characters of a layer's name that say whose it is. */
export const layerProjectLength = 16;

/**
 * The names of the layers to remove: those from before a moment, and while there are too many, the oldest of the project that has
 * most, so that no project takes the others' room. Pure.
 */
export function layersToRemove(
  layers: readonly LayerAge[],
  { max, before }: { readonly max: number; readonly before: number },
): readonly string[] {
  const oldestFirst = layers.toSorted((earlier, later) => earlier.createdAt - later.createdAt);
  const removed = oldestFirst.filter(({ createdAt }) => createdAt < before);
  const ofProjects = Map.groupBy(oldestFirst.slice(removed.length), ({ project }) => project);
  for (let left = oldestFirst.length - removed.length; left > max; left -= 1) {
    const most = Math.max(...[...ofProjects.values()].map(({ length }) => length));
    const [first] = [...ofProjects.values()]
      .filter(({ length }) => length === most)
      .toSorted(([one], [other]) => (one?.createdAt ?? 0) - (other?.createdAt ?? 0));
    const oldest = first?.shift();
    if (oldest !== undefined) removed.push(oldest);
  }
  return removed.map(({ name }) => name);
}
