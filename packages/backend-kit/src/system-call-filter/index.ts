/** A filter of system calls as the kernel loads it, for sandboxes that no container engine filters. */
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
  setIdRules,
  x32Bit,
} from "./compile.js";
