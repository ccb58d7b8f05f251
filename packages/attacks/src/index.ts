/** Every attempt to break a promise of a sandbox, what must still work inside, and the decoys that attempts reach for. */
export { allowances } from "./allowances.js";
export {
  type Allowance,
  type Attack,
  type AttackOutcome,
  blocked,
  impossible,
  type NonEmptyArray,
  notRun,
  type RunnerProcess,
  type RunnerProcessOptions,
  reached,
  refused,
  type Stage,
} from "./attacks/attack.js";
export { attacks } from "./attacks/catalogue.js";
export { outcomeOf, type ProgramAttack, programAttack } from "./attacks/program-attack.js";
export { ChangingNames, keysZone } from "./decoys/changing-names.js";
export { type CertificateMaker, CredentialHost } from "./decoys/credential-host.js";
export { type DecoyProcess, startDecoyProcess } from "./decoys/decoy-process.js";
export { type Decoys, startDecoys } from "./decoys/decoys.js";
export { dialProgram, peerProgram } from "./decoys/near-programs.js";
export {
  type DatagramDecoy,
  openDatagramDecoy,
  openStreamDecoy,
  type StreamDecoy,
} from "./decoys/network-decoys.js";
export { canary, endProcessesWith, freshNonce, freshSecret, processesWith } from "./decoys/nonce.js";
export type { Endpoint, NearDecoy, NearTarget } from "./decoys/place.js";
export { type DecoyAddresses, type DecoyPlace, listedZone } from "./decoys/place.js";
export { type Mechanism, mechanismNames, mechanisms, mechanismsAgainst } from "./mechanisms.js";
export { python, searchPath } from "./programs/python.js";
export {
  commandOf,
  type Finished,
  type ProgramOptions,
  runCommand,
  runProgram,
  textOf,
  waitForLine,
} from "./programs/run-program.js";
export { type Repetitions, repetitions } from "./repetitions.js";
export { type BoundaryOverrides, type Demand, demandFor, requestFor } from "./stage/boundaries.js";
export { type VerifiableBackend, type Verification, verificationOf } from "./verification.js";
