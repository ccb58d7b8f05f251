export {
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/attacks/system-calls";
export { assemble, type BpfStatement } from "./bpf.js";
export {
  allowedNumbers,
  compileSeccompFilter,
  errnoOf,
  filterStatements,
  seccompErrno,
  x32Bit,
} from "./compile.js";
export { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";
