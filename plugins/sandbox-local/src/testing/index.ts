/**
 * `@ambit/sandbox-local/testing`: the conformance kit's control for the local sandbox. Only for tests and `ambit
 * verify`: it needs `@ambit/testkit`, and the plugin itself doesn't import it.
 */
export { control } from "./control.js";
export { renderMutants } from "./mutation/render-mutants.js";
export { isCaught, type MutantRow, runMutants } from "./mutation/run-mutants.js";
export { type ProbeMutantRow, renderProbeMutants, runProbeMutants } from "./mutation/run-probe-mutants.js";
