/** `@ambit/testkit`: the attacks, and the code that runs and judges them. Needs no test runner. */
export {
  type Allowance,
  type Attack,
  type AttackOutcome,
  allowances,
  attacks,
  type CertificateMaker,
  ChangingNames,
  CredentialHost,
  canary,
  type DecoyAddresses,
  type DecoyPlace,
  type Decoys,
  type NonEmptyArray,
  type ProgramAttack,
  programAttack,
  type Repetitions,
  repetitions,
  type Stage,
  startDecoys,
  type VerifiableBackend,
  type Verification,
} from "@ambit/attacks";
export { bareControl, type Control } from "./control/control.js";
export { operatorControl } from "./control/operator-control.js";
export { type DoorRequest, type DoorRequestOptions, DoorStage } from "./door/door-stage.js";
export {
  type ApiRequest,
  type ApiScript,
  messageRecord,
  resultRecord,
  ScriptedApi,
  type ScriptedRun,
} from "./door/scripted-api.js";
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
export { type MatrixColumn, renderEnforcementMatrix } from "./report/render-matrix.js";
export { type RunAttacksOptions, runAttacks, type VerifyReport } from "./report/run-attacks.js";
