import type { Allowance } from "../attacks/attack.js";
import { type ProgramAttack, programAttack } from "../attacks/program-attack.js";

/** Something that must still work inside, run in the same way as an attack. */
export function programAllowance(allowance: Omit<ProgramAttack, "needs">): Allowance {
  return programAttack(allowance);
}
