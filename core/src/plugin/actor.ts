import type { Boundary } from "../boundary.js";
import type { Capability, Domain, Finding, Gap, Site } from "../contract/index.js";

/** A gap as an actor states it; the planner adds the actor and the tool or server. */
export type ActorGap = Pick<Gap, "capability" | "reason" | "fix">;

/**
 * Anything that acts during a run. `Use` is the type of what it serves: void for a sandbox or a delivery, a tool for an
 * executor, a request for a harness, an MCP server for a tool source. The planner reads the data and calls only the pure
 * methods.
 */
export interface Actor<Use = void> {
  /** Names the actor in gaps and on the receipt: `local`, `callback`, `gemini`. */
  readonly name: string;
  readonly site: Site;
  /** The most that the actor can guarantee: a probe may reduce it, and nothing may extend it. */
  readonly claims: readonly Capability[];
  /**
   * The domains that this use acts in, which the claims must cover. A sandbox must always cover everything that is
   * required, since all programs in it act through it. Pure.
   */
  touches(use: Use): readonly Domain[];
  /**
   * The parts of the boundary that this use can't cover although the actor claims them: a destination off the allowlist, a
   * platform's limit (ten entries at most). They count if the domain is required, even if the use doesn't touch it. Pure and
   * synchronous: the method only reads its arguments.
   */
  gaps(boundary: Boundary, use: Use): readonly ActorGap[];
  /**
   * Tests, with a control, what the actor can enforce on this host. Finding a program installed proves nothing.
   * A claim without a finding counts as not proven. The probe must settle when `signal` aborts: findings that arrive within
   * a second still count, and should say what it was waiting for.
   */
  probe(signal: AbortSignal): Promise<readonly Finding[]>;
  /**
   * What the findings depend on besides the actor's code, such as the host's programs with their versions. Evidence from an
   * earlier process counts only if all of it is unchanged. The server's start waits for the result. Default: nothing.
   */
  dependsOn?(signal: AbortSignal): Promise<readonly string[]>;
}
