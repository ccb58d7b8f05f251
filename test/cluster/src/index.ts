/** A real one-node Kubernetes for tests, in namespaces of its own; or any cluster, by its kubeconfig. */
export { type ApiObject, ApiRefused, ClusterApi } from "./api.js";
export { copyPrograms, type ImageSource, systemPath } from "./image.js";
export { OwnCluster, type PolicyBehaviour, policyLabels } from "./own-cluster.js";
export { whyNotStarted } from "./programs.js";
export { ownUnavailableReason, type TestCluster, testCluster, unavailableReason } from "./shared.js";
export type { ProgramName } from "./start/configuration.js";
export { removeLeftovers, type StartedCluster, startCluster } from "./start/start.js";
