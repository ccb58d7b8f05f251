/** Rows that count what is kept: a writer locks its row until its commit, so there are several to choose from. */
export const sizeShards: readonly number[] = Array.from({ length: 16 }, (_, shard) => shard);
