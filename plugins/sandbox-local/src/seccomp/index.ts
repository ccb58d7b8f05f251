export { isSeccompArchitecture, type SeccompArchitecture } from "./architecture.js";
export { compileSeccompFilter, errnoOf, seccompErrno, x32Bit } from "./compile.js";
export { type ArgumentTest, type SeccompRule, seccompRules } from "./rules.js";
export { type SyscallName, syscallNumber, syscallNumbers } from "./syscall-numbers.js";
