/**
 * A Daytona on 127.0.0.1 for tests. The official SDK drives it unchanged; it has real processes in real
 * containers, on a real network that applies the limits. A test that passes here proves a client, not the platform.
 */

export type {
  ApiRequest,
  AppliedNetwork,
  Faults,
  LoopbackDaytona,
  LoopbackSandboxView,
  LoopbackSecretView,
  RequestFault,
  World,
  WorldArrival,
  WorldHostView,
  WorldRequest,
} from "./interface.js";
export { startLoopbackDaytona } from "./loopback.js";
export type { LoopbackOptions, LoopbackSnapshot, WorldHost } from "./options.js";
export { unavailableReason } from "./requirements.js";
