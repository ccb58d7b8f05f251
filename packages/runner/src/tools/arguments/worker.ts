import { parentPort } from "node:worker_threads";
import { ArgumentsCheck } from "./check.js";
import type { CheckRequest } from "./messages.js";

const check = new ArgumentsCheck();

parentPort?.on("message", ({ tool, schema, given }: CheckRequest) => {
  parentPort?.postMessage({ problem: check.problem(tool, schema, given) });
});
// JSON Schema's own schema is compiled with the first check, whose time is limited: here it isn't.
check.problem("none", '{"type":"object"}', "{}");
parentPort?.postMessage("ready");
