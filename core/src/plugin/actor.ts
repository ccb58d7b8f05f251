import type { Boundary } from "../boundary/index.js";
import type { Capability, Domain, Finding, Gap, Site } from "../contract/index.js";

/** A gap as an actor states it; the planner adds who and for which tool or server. */
export type ActorGap = Pick<Gap, "capability" | "reason" | "fix">;

/**
 * Anything that acts during a run. `Use` is what brings it in: nothing for a sandbox or a delivery, a tool for an
 * executor, a request for a harness, an MCP server for a tool source. The planner reads the data and calls the pure
 * methods only.
 */
export interface Actor<Use = void> {
  /** As on the wire, in gaps and on the receipt: `local`, `callback`, `gemini`. */
  readonly name: string;
  readonly site: Site;
  /** Upper bound: a probe may shrink it, nothing may grow it. */
  readonly claims: readonly Capability[];
  /**
   * The domains this use acts in. What isn't touched needs no cover, except of a sandbox: everything in it acts
   * through it, so it must cover all that is required. Pure.
   */
  touches(use: Use): readonly Domain[];
  /**
   * What this use can't cover of the boundary beyond its claims: a destination off the allowlist, a platform's
   * limit (ten entries at most). Counts wherever the domain is required, touched or not. Pure and synchronous; it
   * only looks at what it is given.
   */
  gaps(boundary: Boundary, use: Use): readonly ActorGap[];
  /**
   * Sees by doing, with a control, what this host lets it enforce: never by asking whether a program exists.
   * A claim without a finding counts as not proven. Must settle when `signal` aborts.
   */
  probe(signal: AbortSignal): Promise<readonly Finding[]>;
}
