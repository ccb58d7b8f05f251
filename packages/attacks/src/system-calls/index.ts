/** System calls that a sandbox must refuse, and a static program that makes them inside. */

export { allowedCall, type CallAttempt, callAttempts } from "./attempts.js";
export {
  type AllowedCall,
  allowedCalls,
  foreignCallProgram,
  isSeccompArchitecture,
  type NumberedCall,
  numberOf,
  resultsIn,
  type SeccompArchitecture,
  type SyscallName,
  seccompArchitectures,
  syscallNames,
  syscallNumber,
  syscallNumbers,
  systemCallProgram,
  tableAddress,
  withTable,
  wordFor,
} from "./calls.js";
