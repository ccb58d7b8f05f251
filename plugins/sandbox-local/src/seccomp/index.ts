export {
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/backend-kit/system-calls";
export { compileSeccompFilter, errnoOf, seccompErrno, x32Bit } from "./compile.js";
export { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";
