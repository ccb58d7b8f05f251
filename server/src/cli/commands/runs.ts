import { interactionsResponseSchema, runsResponseSchema } from "@ambit/durable";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { type ClientOptions, ServerClient } from "../server-client.js";

export interface RunsOptions extends ClientOptions {
  readonly state?: string;
  readonly session?: string;
  readonly json?: boolean;
}

/** `ambit runs`: the stored runs of a server, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = new ServerClient(options);
  const query = new URLSearchParams();
  if (options.state !== undefined) query.set("state", options.state);
  if (options.session !== undefined) query.set("sessionId", options.session);
  const found = runsResponseSchema.parse(await client.json("GET", `/runs?${query}`));
  const open = interactionsResponseSchema.parse(await client.json("GET", "/interactions?state=open"));
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ ...found, ...open }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const rows = found.runs.map((run) => {
    const questions = open.interactions.filter(({ runId }) => runId === run.runId).length;
    const asks = questions === 0 ? "" : `${questions} open`;
    return [run.runId, run.state, run.harness, run.sessionId ?? "", asks, run.createdAt];
  });
  process.stdout.write(table(["run", "state", "harness", "session", "questions", "created"], rows));
  if (open.interactions.length === 0) return exitCodes.ok;
  const questions = open.interactions.map(({ id, kind, runId, payload }) => [
    id,
    kind,
    runId,
    namesOf(payload),
  ]);
  process.stdout.write(`\n${table(["open question", "kind", "run", "tool"], questions)}`);
  return exitCodes.ok;
}

function namesOf(payload: unknown): string {
  const isNamed = typeof payload === "object" && payload !== null && "toolName" in payload;
  return isNamed ? String(payload.toolName) : "";
}
