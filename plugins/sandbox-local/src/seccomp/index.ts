export {
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/attacks/system-calls";
export { compileSeccompFilter, errnoOf, seccompErrno, x32Bit } from "./compile.js";
export { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";
