import { judgeFirstFlight } from "./first-flight.js";
import { readHttpDestination } from "./http/destination.js";

/** How a connection that was let through is held to the name that it was let through by. */
export interface EgressChecks {
  /** The tunnel's name and that in its first bytes. */
  readonly firstFlight: typeof judgeFirstFlight;
  /** A request's target and its Host header. */
  readonly destination: typeof readHttpDestination;
}

export const egressChecks: EgressChecks = { firstFlight: judgeFirstFlight, destination: readHttpDestination };
