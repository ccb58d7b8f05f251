/** `@ambit/testkit`: the attacks, and the code that runs and judges them. Needs no test runner. */
export { allowances } from "./allowances/catalogue.js";
export type { Allowance, Attack, NonEmptyArray, Outcome, Stage } from "./attacks/attack.js";
export { attacks } from "./attacks/catalogue.js";
export { type ProgramAttack, programAttack } from "./attacks/program-attack.js";
export { bareControl, type Control } from "./control/control.js";
export { operatorControl } from "./control/operator-control.js";
export { canary } from "./decoys/canary.js";
export { ChangingNames } from "./decoys/changing-names.js";
export { type CertificateMaker, CredentialHost } from "./decoys/credential-host.js";
export { type Decoys, startDecoys } from "./decoys/decoys.js";
export {
  applicable,
  type CapabilityReport,
  type JudgeOptions,
  judgeCapability,
} from "./judge/judge-capability.js";
export { tryUnguarded } from "./judge/trials.js";
export {
  type AllowanceRow,
  type Assurance,
  type AttackRow,
  assuranceOf,
  type Verdict,
  verdictOf,
} from "./judge/verdict.js";
export { type Repetitions, repetitions } from "./repetitions.js";
export { type MatrixColumn, renderEnforcementMatrix } from "./report/render-matrix.js";
export { type RenderOptions, renderVerifyTable } from "./report/render-table.js";
export { type RunAttacksOptions, runAttacks, type VerifyReport } from "./report/run-attacks.js";
