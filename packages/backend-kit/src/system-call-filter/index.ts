/** A filter of system calls as the kernel loads it, for sandboxes that no container engine filters. */
export { assemble, type BpfStatement } from "./bpf.js";
export {
  allowedNumbers,
  compileSeccompFilter,
  errnoOf,
  filterStatements,
  seccompErrno,
  x32Bit,
} from "./compile.js";
export { type ArgumentTest, type SeccompRule, seccompRules, setIdRules } from "./rules.js";
