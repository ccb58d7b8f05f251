/** System calls that a sandbox must refuse, and a static program that makes them inside. */

export { allowedCall, type CallAttempt, callAttempts } from "./attempts.js";
export {
  type AllowedCall,
  allowedCalls,
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  seccompArchitectures,
  syscallNames,
  syscallNumber,
  syscallNumbers,
} from "./calls.js";
export {
  foreignCallProgram,
  type NumberedCall,
  resultsIn,
  systemCallProgram,
  tableAddress,
  withTable,
} from "./program.js";
