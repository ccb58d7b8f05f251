import { randomBytes } from "node:crypto";
import type { HttpCaller } from "../http.js";
import { demoRequest } from "../subjects/server/requests.js";
import { count, type Tally } from "./attack.js";
import type { Instruction } from "./hostile-agent.js";

/** A credential, so that what the run says is searched for it. */
const secret = `Bearer sk-soak-${randomBytes(12).toString("hex")}`;

/** A run of the hostile agent. */
export function hostileRequest(instruction: Instruction, more: object = {}): string {
  const toolCallback = { endpoint: "http://127.0.0.1:9/", authorization: secret };
  return demoRequest(JSON.stringify(instruction), { harness: "hostile", toolCallback, ...more });
}

/**
 * One run whose events are read as fast as they come, and counted in characters.
 * @returns its last line. @throws Error if it wasn't begun
 */
export async function readRun(
  caller: HttpCaller,
  body: string,
  tally: Tally,
  signal: AbortSignal,
): Promise<string> {
  const response = await caller.open("/run", body, "application/x-ndjson");
  const leave = () => response.destroy();
  signal.addEventListener("abort", leave, { once: true });
  let last = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      count(tally, "characters of events", chunk.length);
      last = `${last.slice(-2_000)}${chunk.slice(-2_000)}`;
    }
  } finally {
    signal.removeEventListener("abort", leave);
  }
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${last}`);
  return last;
}
