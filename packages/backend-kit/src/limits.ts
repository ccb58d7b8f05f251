import {
  type ActorGap,
  type Capability,
  type Finding,
  type HiddenCredential,
  type Hiding,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";

export interface Limits {
  /** For the error: `The Daytona sandbox`. */
  readonly sandbox: string;
  readonly claims: readonly Capability[];
  /** The parts of the boundary that can't be enforced, as the backend states them to the planner. */
  readonly gaps: readonly ActorGap[];
  /** The findings of the last probe, if the platform determines what it enforces. Default: none. */
  readonly findings?: readonly Finding[];
  /** Whether the backend hides one of the spec's secrets. Default: they aren't checked. */
  readonly hides?: (credential: HiddenCredential) => Hiding;
}

/**
 * The first step of `open`, which never opens anything weaker than requested.
 *
 * @throws SandboxFailed for what the backend can't enforce on any host or platform.
 */
export function refuseBeyond(
  { sandbox, claims, gaps, findings = [], hides = () => true }: Limits,
  { required, secrets = [] }: Pick<SandboxSpec, "required" | "secrets">,
): void {
  const [gap] = gaps;
  if (gap !== undefined) throw new SandboxFailed(`${gap.capability}: ${gap.reason}: ${gap.fix}`);
  const unclaimed = required.find((capability) => !claims.includes(capability));
  if (unclaimed !== undefined) throw new SandboxFailed(`${sandbox} doesn't enforce ${unclaimed}`);
  for (const finding of findings) {
    if (finding.proven || !required.includes(finding.capability)) continue;
    throw new SandboxFailed(
      `${sandbox} doesn't enforce ${finding.capability}: ${finding.reason}: ${finding.fix}`,
    );
  }
  for (const secret of secrets) {
    const hiding = hides(secret);
    if (hiding === true) continue;
    throw new SandboxFailed(`${sandbox} can't keep ${secret.name} outside: ${hiding.reason}: ${hiding.fix}`);
  }
}
