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
  /** In the error: `The Daytona sandbox`. */
  readonly sandbox: string;
  readonly claims: readonly Capability[];
  /** What of the boundary can't be enforced, as the backend states it to the planner. */
  readonly gaps: readonly ActorGap[];
  /** Of the last probe, where the platform decides what holds. Default: none. */
  readonly findings?: readonly Finding[];
  /** The backend's answer for one of the spec's secrets. Default: they aren't looked at. */
  readonly hides?: (credential: HiddenCredential) => Hiding;
}

/**
 * The first thing that `open` does: it never opens something weaker than asked for.
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
