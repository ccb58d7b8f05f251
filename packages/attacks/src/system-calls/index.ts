/** System calls that a sandbox must refuse, and a static program that makes them inside. */
export { type AllowedCall, allowedCalls } from "./allowed-calls.js";
export { allowedCall, type CallAttempt, callAttempts } from "./attempts.js";
export {
  foreignCallProgram,
  type NumberedCall,
  resultsIn,
  systemCallProgram,
  tableAddress,
  withTable,
} from "./program.js";
export {
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  seccompArchitectures,
  syscallNames,
  syscallNumber,
  syscallNumbers,
} from "./syscall-numbers.js";
