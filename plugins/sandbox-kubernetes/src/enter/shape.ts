/**
 * - `user-namespace`: root inside has no rights on the node, so the pod may have the rights with which the guest daemon leaves
 *   the pod's network, and processes are hidden from each other.
 * - `baseline`: a container without such rights. Its network is closed by the cluster's policies alone.
 */
export type PodShape = "user-namespace" | "baseline";
