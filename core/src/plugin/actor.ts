import type { Boundary } from "../boundary.js";
import type { Capability, Domain, Finding, Gap, Site } from "../contract/index.js";

/** A gap as an actor states it; the planner adds the actor and the tool or server. */
export type ActorGap = Pick<Gap, "capability" | "reason" | "fix">;

/**
 * Anything that acts during a run. `Use` is what it is used for: nothing for a sandbox or a delivery, a tool for an
 * executor, a request for a harness, an MCP server for a tool source. The planner reads the data and calls only the pure
 * methods.
 */
export interface Actor<Use = void> {
  /** As on the wire, in gaps and on the receipt: `local`, `callback`, `gemini`. */
  readonly name: string;
  readonly site: Site;
  /** Upper bound: a probe may reduce it, nothing may extend it. */
  readonly claims: readonly Capability[];
  /**
   * The domains this use acts in: those that its claims must cover. A sandbox must always cover everything that is
   * required, since everything in it acts through it. Pure.
   */
  touches(use: Use): readonly Domain[];
  /**
   * The parts of the boundary that this use can't cover although it claims them: a destination off the allowlist, a
   * platform's limit (ten entries at most). They count if the domain is required, even if it isn't touched. Pure and
   * synchronous: it only reads its arguments.
   */
  gaps(boundary: Boundary, use: Use): readonly ActorGap[];
  /**
   * Tests, with a control, what it can enforce on this host. Finding a program installed proves nothing.
   * A claim without a finding counts as not proven. Must settle when `signal` aborts: then findings count that say within a
   * second what it waited for.
   */
  probe(signal: AbortSignal): Promise<readonly Finding[]>;
  /**
   * What its findings depend on besides its own code, such as the host's programs with their versions. Evidence that an
   * earlier process kept counts only if all of it is the same. A start of the server waits for it. Default: nothing.
   */
  dependsOn?(signal: AbortSignal): Promise<readonly string[]>;
}
