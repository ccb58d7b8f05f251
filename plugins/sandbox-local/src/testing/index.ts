/**
 * `@ambit/sandbox-local/testing`: the control of the conformance kit for the local sandbox. For tests and `ambit verify`
 * alone: needs `@ambit/testkit`, and nothing of the plugin itself imports it.
 */
export { control } from "./control.js";
export { renderMutants } from "./mutation/render-mutants.js";
export { isCaught, type MutantRow, runMutants } from "./mutation/run-mutants.js";
