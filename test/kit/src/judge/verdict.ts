import type { Attack, Outcome } from "../attacks/attack.js";

/**
 * `proven`: it works unguarded and fails guarded · `escaped`: it works guarded · `toothless`: it fails unguarded too,
 * so it proves nothing · `unproven`: the same, and expected on this host, which lacks what the attack needs ·
 * `impossible`: this host has nothing of the kind · `broken`: it didn't get as far as trying ·
 * `refused`: the backend states what it is made within as a gap, and opens nothing · `exempt`: its author says why it
 * breaks no promise here.
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

/** What the two outcomes of one attack show together. Pure. */
export function verdictOf(
  attack: Pick<Attack, "needs">,
  control: Outcome,
  guarded: Outcome,
): Exclude<Verdict, "exempt"> {
  // Whatever the control did: what works guarded is an escape.
  if (guarded.result === "reached") return "escaped";
  if (guarded.result === "refused") return "refused";
  if (control.result === "not-run" || guarded.result === "not-run") return "broken";
  if (control.result === "impossible" || guarded.result === "impossible") return "impossible";
  if (control.result === "reached") return "proven";
  return attack.needs === undefined ? "toothless" : "unproven";
}

/** What an attack that isn't judged by its verdict alone adds to the capability's assurance. */
export interface AttackRow {
  readonly id: string;
  readonly title: string;
  /** What of the guard the control lacked; undefined where it lacked all of it. */
  readonly without?: string;
  readonly control: Outcome;
  readonly guarded: Outcome;
  readonly verdict: Verdict;
}

export interface AllowanceRow {
  readonly id: string;
  readonly title: string;
  readonly outcome: Outcome;
}

/**
 * `proven`: at least one attack works unguarded, and every one fails guarded · `refused`: it isn't claimed, or can't be
 * proven here, and is refused · `escaped`: an attack works guarded · `weakened`: it isn't claimed or proven here, and
 * is not refused · `useless`: what must work doesn't · `unproven`: the attacks show nothing either way.
 */
export type Assurance = "proven" | "refused" | "escaped" | "weakened" | "useless" | "unproven";

/** The worst that the rows show. Pure. */
export function assuranceOf(rows: readonly AttackRow[], allowances: readonly AllowanceRow[]): Assurance {
  const has = (...verdicts: Verdict[]) => rows.some(({ verdict }) => verdicts.includes(verdict));
  if (has("escaped")) return "escaped";
  if (allowances.some(({ outcome }) => outcome.result === "blocked" || outcome.result === "not-run"))
    return "useless";
  if (has("broken", "toothless") || !has("proven")) return "unproven";
  return "proven";
}
