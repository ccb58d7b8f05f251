import { appendFileSync } from "node:fs";

const file = process.env.AMBIT_AGENTS_RESULTS;

/** A cell of docs/agents.md, for `node scripts/docs/agents.mjs`: a run's outcome. Default: yes. */
export function record(agent: string, row: string, note: string | number = "yes"): void {
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ table: "runs", agent, row, note })}\n`);
}

/** The same for a feature of the agent's profile. */
export function recordFeature(agent: string, row: string, note: string | number = "yes"): void {
  if (file !== undefined)
    appendFileSync(file, `${JSON.stringify({ table: "features", agent, row, note })}\n`);
}
