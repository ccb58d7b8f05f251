import { parentPort } from "node:worker_threads";
import { ArgumentsCheck } from "./check.js";
import type { CheckRequest } from "./checker.js";

const check = new ArgumentsCheck();

parentPort?.on("message", ({ tool, schema, given }: CheckRequest) => {
  parentPort?.postMessage({ problem: check.problem(tool, schema, given) });
});
// Compiles the JSON Schema meta-schema now, since the time of the first check is limited.
check.problem("none", '{"type":"object"}', "{}");
parentPort?.postMessage("ready");
