import type { NetworkDecision } from "../decide.js";
import type { Target } from "../target.js";

export type EgressProtocol = "http" | "connect" | "socks5" | "socks4" | "unknown";

/** An allowed destination, before or after the connection is made. */
export interface AdmittedDestination {
  readonly target: Target;
  readonly protocol: EgressProtocol;
  readonly addresses: readonly string[];
  readonly decision: NetworkDecision;
}
