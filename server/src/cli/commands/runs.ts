import { interactionsResponseSchema, runsResponseSchema } from "@ambit/durable";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { allOf } from "../pages.js";
import { type ClientOptions, ServerClient } from "../server-client.js";

export interface RunsOptions extends ClientOptions {
  readonly state?: string;
  readonly session?: string;
  readonly json?: boolean;
}

/** `ambit runs`: the stored runs of a server, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = new ServerClient(options);
  const { state, session: sessionId } = options;
  const found = await allOf(client, {
    path: "/runs",
    filter: { state, sessionId },
    rowsOf: (body) => runsResponseSchema.parse(body).runs,
    idOf: ({ runId, projectId }) => (projectId === undefined ? runId : `${projectId}/${runId}`),
  });
  const open = await openQuestions(client, sessionId);
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ runs: found, interactions: open }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const rows = found.map((run) => {
    const questions = open.filter(({ runId }) => runId === run.runId).length;
    const asks = questions === 0 ? "" : `${questions} open`;
    return [run.runId, run.state, run.harness, run.sessionId ?? "", asks, run.createdAt];
  });
  process.stdout.write(table(["run", "state", "harness", "session", "questions", "created"], rows));
  if (open.length === 0) return exitCodes.ok;
  const questions = open.map(({ id, kind, runId, payload }) => [id, kind, runId, namesOf(payload)]);
  process.stdout.write(`\n${table(["open question", "kind", "run", "tool"], questions)}`);
  return exitCodes.ok;
}

/** Of all runs, or of one session. */
export function openQuestions(client: ServerClient, sessionId?: string) {
  return allOf(client, {
    path: "/interactions",
    filter: { state: "open", sessionId },
    rowsOf: (body) => interactionsResponseSchema.parse(body).interactions,
    idOf: ({ id }) => id,
  });
}

function namesOf(payload: unknown): string {
  const isNamed = typeof payload === "object" && payload !== null && "toolName" in payload;
  return isNamed ? String(payload.toolName) : "";
}

/** `ambit cancel`: ends a running or queued run early. It still has its result. */
export async function cancel(runId: string, options: ClientOptions): Promise<number> {
  await new ServerClient(options).json("POST", `/runs/${encodeURIComponent(runId)}/cancel`);
  process.stdout.write(`cancelled; \`ambit attach ${runId}\` shows its result\n`);
  return exitCodes.ok;
}
