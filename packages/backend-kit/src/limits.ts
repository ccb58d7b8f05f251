import { type ActorGap, type Capability, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";

export interface Limits {
  /** In the error: `The Daytona sandbox`. */
  readonly sandbox: string;
  readonly claims: readonly Capability[];
  /** What of the boundary can't be enforced, as the backend states it to the planner. */
  readonly gaps: readonly ActorGap[];
}

/**
 * The first thing that `open` does: it never opens something weaker than asked for.
 *
 * @throws SandboxFailed for what the backend can't enforce, whatever the host or platform offers.
 */
export function refuseBeyond({ sandbox, claims, gaps }: Limits, spec: Pick<SandboxSpec, "required">): void {
  const [gap] = gaps;
  if (gap !== undefined) throw new SandboxFailed(`${gap.capability}: ${gap.reason}: ${gap.fix}`);
  const unclaimed = spec.required.find((capability) => !claims.includes(capability));
  if (unclaimed !== undefined) throw new SandboxFailed(`${sandbox} doesn't enforce ${unclaimed}`);
}
