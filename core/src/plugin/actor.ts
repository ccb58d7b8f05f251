import type { Boundary } from "../boundary/index.js";
import type { Capability, Domain, Gap, Site } from "../contract/index.js";

/** A gap as an actor states it; the planner adds who and for which tool or server. */
export type ActorGap = Pick<Gap, "capability" | "reason" | "fix">;

/** What one probe saw of one claim. */
export type Finding =
  | {
      readonly capability: Capability;
      readonly proven: true;
      /** What was done to see it, e.g. "a connect to a host listener worked outside and failed inside". */
      readonly how: string;
    }
  | {
      readonly capability: Capability;
      readonly proven: false;
      /** The host's own words where there are any: `bwrap: No permissions to create new namespace`. */
      readonly reason: string;
      /** What a deployer does about it: a command, a flag, another backend. */
      readonly fix: string;
    };

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
