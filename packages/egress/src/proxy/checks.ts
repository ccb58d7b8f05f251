import { readHttpDestination } from "./http/destination.js";
import { judgeFirstFlight } from "./tunnel/first-flight.js";

/** Checks that an allowed connection really is for the name that it was allowed for. */
export interface EgressChecks {
  /** The tunnel's name and that in its first bytes. */
  readonly firstFlight: typeof judgeFirstFlight;
  /** A request's target and its Host header. */
  readonly destination: typeof readHttpDestination;
}

export const egressChecks: EgressChecks = { firstFlight: judgeFirstFlight, destination: readHttpDestination };
