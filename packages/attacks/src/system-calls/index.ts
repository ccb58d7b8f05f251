/** System calls that a sandbox must refuse, and a static program that makes them inside. */
export { type AllowedCall, allowedCalls } from "./allowed-calls.js";
export { isSeccompArchitecture, type SeccompArchitecture, seccompArchitectures } from "./architecture.js";
export { allowedCall, type CallAttempt, callAttempts } from "./attempts.js";
export {
  foreignCallProgram,
  type NumberedCall,
  resultsIn,
  systemCallProgram,
  tableAddress,
  withTable,
} from "./program.js";
export { type SyscallName, syscallNames, syscallNumber, syscallNumbers } from "./syscall-numbers.js";
