import type { NetworkDecision } from "../decide.js";
import type { Target } from "../target.js";

export type EgressProtocol = "http" | "connect" | "socks5" | "socks4" | "unknown";

/** A destination that passed, before or after it is dialled. */
export interface Admitted {
  readonly target: Target;
  readonly protocol: EgressProtocol;
  readonly addresses: readonly string[];
  readonly decision: NetworkDecision;
}
