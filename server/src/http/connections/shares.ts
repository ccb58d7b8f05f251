/** Open connections at one time, and who may have how many of them. */
export interface ConnectionShares {
  /** Whose caller isn't known yet. One more, and the oldest of them ends. */
  readonly unknown: number;
  /** Of those, from one address of another machine. */
  readonly unknownPerPeer: number;
  /** Whose caller has sent a token, or is let in without one. Kept for them, whatever the others do. */
  readonly known: number;
  /** Of those, all tenants' together. The rest is the operator's. */
  readonly tenants: number;
  /** One tenant's. */
  readonly perTenant: number;
}

/** Assumed where nothing says how many files may be open. */
const assumedOpenFiles = 1_024;
/** Half of the files that may be open: sandboxes, stores and connections of runs need the rest. */
const partOfOpenFiles = 2;
/** The health listener's part. The more connections it keeps, the longer a slow probe has while others flood it. */
const healthPartOfOpenFiles = 16;
const maxHealthConnections = 256;

/** The shares of `maxConnections`, or of fewer where the process may open few files. Pure. */
export function sharesOf(maxConnections: number, openFiles = assumedOpenFiles): ConnectionShares {
  const total = Math.max(16, Math.min(maxConnections, Math.floor(openFiles / partOfOpenFiles)));
  // Large: a caller has as long to show its token as it takes others to open so many.
  const unknown = Math.floor(total / 2);
  const known = total - unknown;
  const tenants = Math.floor((known * 3) / 4);
  return {
    unknown,
    known,
    tenants,
    unknownPerPeer: Math.ceil(unknown / 4),
    perTenant: Math.ceil(tenants / 4),
  };
}

/** Open connections of the health listener, which are none of the server's. Pure. */
export function healthConnections(openFiles = assumedOpenFiles): number {
  return Math.max(8, Math.min(maxHealthConnections, Math.floor(openFiles / healthPartOfOpenFiles)));
}
