export {
  isSeccompArchitecture,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
  syscallNumbers,
} from "@ambit/attacks/system-calls";
export {
  type ArgumentTest,
  allowedNumbers,
  assemble,
  type BpfStatement,
  compileSeccompFilter,
  errnoOf,
  filterStatements,
  type SeccompRule,
  seccompErrno,
  seccompRules,
  x32Bit,
} from "@ambit/backend-kit/system-call-filter";
