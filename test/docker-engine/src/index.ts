/**
 * A real Docker engine for tests: dockerd with containerd, runc and gVisor's runsc, in namespaces of its own. Found
 * where one answers and none may be started.
 */

export { copyImage } from "./copied-image.js";
export { crashEngine } from "./crash.js";
export { type DockerEngine, dockerEngine, unavailableReason } from "./shared.js";
export { startSmallEngine } from "./small-engine.js";
export { type StartedEngine, startDockerEngine } from "./start.js";
