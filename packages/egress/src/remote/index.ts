/** The filtering proxy in a process elsewhere, which its runner controls over a pipe. */

export { secretBytes } from "./messages.js";
export {
  type GatePipe,
  gateProgram,
  openRelay,
  openRemoteEgress,
  type RelayOptions,
  type RemoteEgressOptions,
  RemoteGate,
  type RemoteGateOptions,
  relayProgram,
  type ServeOptions,
  type StartedRelay,
} from "./remote-gate.js";
