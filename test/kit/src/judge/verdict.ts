import type { Attack, AttackOutcome } from "@ambit/attacks";

/**
 * `proven`: it works unguarded and fails guarded · `escaped`: it works guarded · `toothless`: it fails unguarded too,
 * so it proves nothing · `unproven`: the same, and expected on this host, which lacks what the attack needs ·
 * `impossible`: this host has no such target · `broken`: it failed before it could try · `refused`: the backend reports
 * the boundary for the attack as a gap, and opens nothing · `exempt`: its author explains why it breaks no promise
 * here.
 */
export type Verdict =
  | "proven"
  | "escaped"
  | "toothless"
  | "unproven"
  | "impossible"
  | "broken"
  | "refused"
  | "exempt";

/** The verdict on the two outcomes of one attack. Pure. */
export function verdictOf(
  attack: Pick<Attack, "needs">,
  control: AttackOutcome,
  guarded: AttackOutcome,
): Exclude<Verdict, "exempt"> {
  // Whatever the control did, an attack that works guarded is an escape.
  if (guarded.result === "reached") return "escaped";
  if (guarded.result === "refused") return "refused";
  if (control.result === "not-run" || guarded.result === "not-run") return "broken";
  if (control.result === "impossible" || guarded.result === "impossible") return "impossible";
  if (control.result === "reached") return "proven";
  return attack.needs === undefined ? "toothless" : "unproven";
}

/** The additional effect of an attack on the capability's assurance, beyond its verdict. */
export interface AttackRow {
  readonly id: string;
  readonly title: string;
  /** The part of the guard that the control lacked; undefined if it lacked all of it. */
  readonly without?: string;
  readonly control: AttackOutcome;
  readonly guarded: AttackOutcome;
  readonly verdict: Verdict;
}

export interface AllowanceRow {
  readonly id: string;
  readonly title: string;
  readonly outcome: AttackOutcome;
}

/**
 * `proven`: at least one attack works unguarded, and every one fails guarded · `refused`: it isn't claimed, or can't be
 * proven here, and is refused · `escaped`: an attack works guarded · `weakened`: it isn't claimed or proven here, but
 * isn't refused · `useless`: something that must work doesn't · `unproven`: the attacks prove nothing either way.
 */
export type Assurance = "proven" | "refused" | "escaped" | "weakened" | "useless" | "unproven";

/** The worst assurance of the rows. Pure. */
export function assuranceOf(rows: readonly AttackRow[], allowances: readonly AllowanceRow[]): Assurance {
  const has = (...verdicts: Verdict[]) => rows.some(({ verdict }) => verdicts.includes(verdict));
  if (has("escaped")) return "escaped";
  if (allowances.some(({ outcome }) => outcome.result === "blocked" || outcome.result === "not-run"))
    return "useless";
  if (has("broken", "toothless") || !has("proven")) return "unproven";
  return "proven";
}
