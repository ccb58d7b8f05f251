import { fileURLToPath } from "node:url";

export type { Complaint, Instruction, Step, StopReason, Verb } from "./grammar.js";

/** Absolute path of the program: run it with `node`, and speak ACP v1 over its stdin and stdout. */
export const demoAgentEntry: string = fileURLToPath(new URL("./bundle/ambit-agent-demo.js", import.meta.url));
