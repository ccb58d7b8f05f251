import { networkInterfaces } from "node:os";

/** The addresses of this host's interfaces, read anew. */
export const addressesOfThisHost = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map((entry) => entry.address));
