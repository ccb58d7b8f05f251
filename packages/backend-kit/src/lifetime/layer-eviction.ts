/** A layer that a platform keeps (`SandboxBackend.layers`). */
export interface LayerAge {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** The names of the layers to remove: those from before a moment, and the oldest of too many. Pure. */
export function layersToRemove(
  layers: readonly LayerAge[],
  { max, before }: { readonly max: number; readonly before: number },
): readonly string[] {
  const newest = layers.toSorted((one, other) => other.createdAt - one.createdAt);
  return newest.filter(({ createdAt }, index) => index >= max || createdAt < before).map(({ name }) => name);
}
