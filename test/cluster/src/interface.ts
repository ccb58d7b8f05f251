import { z } from "zod";

/** A cluster that the tests started: all that another process needs to use it. */
export const ownClusterSchema = z.strictObject({
  /** Of the first process in its namespaces, as this host sees it. */
  pid: z.number(),
  folder: z.string(),
  /** The unpacked programs: `kubectl` and `helm` are among them. */
  programs: z.string(),
  /** Its folder's and its cgroup's name. */
  name: z.string(),
  /** The node's address, which the API server has too. */
  address: z.string(),
  /** This host's address on the link to the node: pods reach what listens there. */
  hostAddress: z.string(),
  /** A second address of this host there. */
  neighbourAddress: z.string(),
});
export type OwnClusterPlace = z.infer<typeof ownClusterSchema>;

/** What a test run's processes share. */
export const sharedSchema = z.union([
  z.strictObject({ own: ownClusterSchema }),
  z.strictObject({ kubeconfig: z.string() }),
  z.strictObject({ reason: z.string() }),
]);
export type Shared = z.infer<typeof sharedSchema>;
