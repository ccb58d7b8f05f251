/** The filtering proxy in a process elsewhere, which its runner controls over a pipe. */
export { gateProgram, relayProgram } from "./programs.js";
export { openRelay, type RelayOptions, type StartedRelay } from "./relay-pipe.js";
export {
  type GatePipe,
  openRemoteEgress,
  type RemoteEgressOptions,
  RemoteGate,
  type RemoteGateOptions,
  type ServeOptions,
} from "./remote-gate.js";
export { secretBytes } from "./tls.js";
