import type { Capability, Finding } from "@ambit/core/plugin";
import type { LocalTrial } from "../../../dist/probe/trial.js";

/** What the probe found in jails without a part. */
export interface PartProbe {
  /** Whether a jail came up at all. */
  readonly isUp: boolean;
  readonly findings: readonly Finding[];
}

/** Capabilities that no single part of a jail's command line enforces. */
const heldElsewhere = new Set<Capability>([
  "resources.memory",
  "resources.processes",
  "resources.cpu",
  "resources.disk",
  "secrets.hidden",
  "inbound.ports",
]);

/** Runs one trial after the other, up to the first that proves nothing. */
export async function probeInTurn(
  trials: readonly LocalTrial[],
  probe: (trial: LocalTrial) => Promise<readonly Finding[]>,
): Promise<PartProbe> {
  const seen: Finding[] = [];
  for (const trial of likeliestFirst(trials)) {
    const all = await probe(trial);
    const findings = all.filter(({ capability }) => trial.shows.some((shown) => shown === capability));
    if (findings.some(({ proven }) => !proven)) return { isUp: isUp(all), findings };
    seen.push(...findings);
  }
  return { isUp: true, findings: seen };
}

/** The trial that inspects a jail's whole view detects most missing parts, so it runs first. */
function likeliestFirst(trials: readonly LocalTrial[]): readonly LocalTrial[] {
  return trials
    .filter(({ shows }) => !shows.some((shown) => heldElsewhere.has(shown)))
    .toSorted((one, other) => other.shows.length - one.shows.length);
}

/** One reason for every claim means that the jail didn't come up. */
function isUp(findings: readonly Finding[]): boolean {
  const reasons = new Set(findings.map((finding) => (finding.proven ? undefined : finding.reason)));
  return reasons.size > 1;
}
