import { interactionsResponseSchema, runsResponseSchema } from "@ambit/durable";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { allOf } from "../pages.js";
import { type ClientOptions, pathOfRun, type RunOptions, ServerClient } from "../server-client.js";

export interface RunsOptions extends ClientOptions {
  readonly state?: string;
  readonly session?: string;
  readonly project?: string;
  readonly json?: boolean;
}

/** `ambit runs`: the stored runs of a server, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = new ServerClient(options);
  const { state, session: sessionId, project: projectId } = options;
  const found = await allOf(client, {
    path: "/runs",
    filter: { state, sessionId, projectId },
    rowsOf: (body) => runsResponseSchema.parse(body).runs,
    idOf: ({ runId, projectId }) => (projectId === undefined ? runId : `${projectId}/${runId}`),
  });
  const open = await openQuestions(client, { sessionId, projectId });
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ runs: found, interactions: open }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  // A tenant's are all of one project.
  const hasProjects = new Set(found.map(({ projectId }) => projectId)).size > 1;
  const rows = found.map((run) => {
    const questions = open.filter((one) => one.runId === run.runId && one.projectId === run.projectId).length;
    const asks = questions === 0 ? "" : `${questions} open`;
    const project = hasProjects ? [run.projectId ?? ""] : [];
    return [run.runId, ...project, run.state, run.harness, run.sessionId ?? "", asks, run.createdAt];
  });
  const projects = hasProjects ? ["project"] : [];
  process.stdout.write(
    table(["run", ...projects, "state", "harness", "session", "questions", "created"], rows),
  );
  if (open.length === 0) return exitCodes.ok;
  const questions = open.map(({ id, kind, runId, payload }) => [id, kind, runId, namesOf(payload)]);
  process.stdout.write(`\n${table(["open question", "kind", "run", "tool"], questions)}`);
  return exitCodes.ok;
}

/** Of all runs, or of one session or project. */
export function openQuestions(
  client: ServerClient,
  filter: { readonly sessionId?: string | undefined; readonly projectId?: string | undefined } = {},
) {
  return allOf(client, {
    path: "/interactions",
    filter: { state: "open", ...filter },
    rowsOf: (body) => interactionsResponseSchema.parse(body).interactions,
    idOf: ({ id }) => id,
  });
}

function namesOf(payload: unknown): string {
  const isNamed = typeof payload === "object" && payload !== null && "toolName" in payload;
  return isNamed ? String(payload.toolName) : "";
}

/** `ambit cancel`: ends a running or queued run early. It still has its result. */
export async function cancel(runId: string, options: RunOptions): Promise<number> {
  await new ServerClient(options).json("POST", pathOfRun(runId, "cancel", options));
  const project = options.project === undefined ? "" : ` --project ${options.project}`;
  process.stdout.write(`cancelled; \`ambit attach ${runId}${project}\` shows its result\n`);
  return exitCodes.ok;
}
