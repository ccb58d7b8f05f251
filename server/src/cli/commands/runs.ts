import {
  interactionsResponseSchema,
  type RunInfo,
  type RunsResponse,
  runInfoSchema,
  runsResponseSchema,
} from "@ambit/durable";
import { age, duration } from "../display/duration.js";
import { marks } from "../display/layout.js";
import { shortId } from "../display/short-id.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { allOf, pagesOf } from "../pages.js";
import {
  type ClientOptions,
  pathOfRun,
  type RunOptions,
  ServerClient,
  ServerRefused,
} from "../server-client.js";
import { withRunMeant } from "../typed-id.js";

export interface RunsOptions extends ClientOptions {
  readonly state?: string;
  readonly session?: string;
  readonly project?: string;
  /** Only those that failed. */
  readonly failed?: boolean;
  /** Rows, the newest first. Default 20. */
  readonly limit?: number;
  readonly json?: boolean;
}

const defaultLimit = 20;

/** Runs that `--failed` looks at, at most. */
const maxLookedAt = 1_000;

/** Results that are read at the same time. */
const atOnce = 8;

type ListedRun = RunsResponse["runs"][number] & Pick<RunInfo, "result">;

/** `ambit runs`: the latest runs of a server with their outcomes, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = new ServerClient(options);
  const { session: sessionId, project: projectId, limit = defaultLimit } = options;
  const { listed, isAll } = await latestRuns(client, limit, options);
  const open = await openQuestions(client, { sessionId, projectId });
  if (options.json === true) {
    const rows = listed.map(({ result, ...run }) => ({ ...run, ...outcomeFields(result) }));
    process.stdout.write(`${JSON.stringify({ runs: rows, interactions: open }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  process.stdout.write(runsTable(listed, open, Date.now()));
  if (!isAll) process.stdout.write(`\nThe latest ${limit}: \`--limit\` shows more.\n`);
  return exitCodes.ok;
}

function outcomeFields(result: RunInfo["result"]) {
  if (result === undefined) return {};
  return { ok: result.ok, stopReason: result.stopReason, failure: result.failure?.code };
}

/** The newest that the options ask for, and whether there are no more. */
async function latestRuns(
  client: ServerClient,
  limit: number,
  { state, session: sessionId, project: projectId, failed = false }: RunsOptions,
): Promise<{ readonly listed: readonly ListedRun[]; readonly isAll: boolean }> {
  const listed: ListedRun[] = [];
  let lookedAt = 0;
  const pages = pagesOf(client, {
    path: "/runs",
    // One more shows whether there are more.
    pageSize: failed ? atOnce * 8 : limit + 1,
    filter: { state: failed ? "ended" : state, sessionId, projectId },
    rowsOf: (body) => runsResponseSchema.parse(body).runs,
    idOf: ({ runId, projectId: project }) => (project === undefined ? runId : `${project}/${runId}`),
  });
  for await (const page of pages) {
    for (let at = 0; at < page.length; at += atOnce) {
      const part = page.slice(at, at + atOnce);
      for (const run of await Promise.all(part.map((one) => withResult(client, one)))) {
        if (failed && run.result?.ok !== false) continue;
        if (listed.length === limit) return { listed, isAll: false };
        listed.push(run);
      }
    }
    lookedAt += page.length;
    if (failed && lookedAt >= maxLookedAt) return { listed, isAll: false };
  }
  return { listed, isAll: true };
}

/** A list has no results. */
async function withResult(client: ServerClient, run: RunsResponse["runs"][number]): Promise<ListedRun> {
  if (run.state !== "ended") return run;
  const { projectId, runId } = run;
  const project = projectId === undefined ? {} : { project: projectId };
  try {
    const { result } = runInfoSchema.parse(await client.json("GET", pathOfRun(runId, "", project)));
    return { ...run, result };
  } catch (error) {
    // It was deleted meanwhile.
    if (error instanceof ServerRefused && error.status === 404) return run;
    throw error;
  }
}

type OpenQuestions = Awaited<ReturnType<typeof openQuestions>>;

/** The runs, and below them what they ask. Pure. @param now in milliseconds since 1970. */
export function runsTable(
  listed: readonly ListedRun[],
  open: OpenQuestions,
  now: number,
  columns?: number,
): string {
  const options = columns === undefined ? {} : { columns };
  const ids = [...listed, ...open].map(({ runId }) => runId);
  // A tenant's are all of one project.
  const hasProjects = new Set(listed.map(({ projectId }) => projectId)).size > 1;
  const rows = listed.map((run) => {
    const { runId, projectId, harness, sessionId = "", createdAt, startedAt, endedAt } = run;
    const questions = open.filter((one) => one.runId === runId && one.projectId === projectId).length;
    return [
      shortId(runId, ids),
      hasProjects ? (projectId ?? "") : "",
      outcomeOf(run),
      harness,
      sessionId,
      questions === 0 ? "" : `${questions} open`,
      age(now - Date.parse(createdAt)),
      startedAt === undefined
        ? ""
        : duration((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt)),
    ];
  });
  const head = ["run", "project", "outcome", "agent", "session", "questions", "began", "took"];
  const shown = table(head, rows, { ...options, shrinks: ["session", "project", "run"] });
  if (open.length === 0) return shown;
  const questionIds = open.map(({ id }) => id);
  const asked = open.map(({ id, kind, runId, payload, createdAt }) => [
    shortId(id, questionIds),
    kind,
    shortId(runId, ids),
    nameIn(payload),
    age(now - Date.parse(createdAt)),
  ]);
  const questions = table(["open question", "kind", "run", "tool", "asked"], asked, {
    ...options,
    shrinks: ["tool", "run"],
  });
  return `${shown}\n${questions}\n\`ambit answer\` takes a question's id, or as much of it as is unique.\n`;
}

/** `✔ end_turn`, `✖ model_failed`; for a run in progress, its state. */
function outcomeOf({ state, result }: ListedRun): string {
  if (result === undefined) return state;
  if (result.ok) return `${marks.holds} ${result.stopReason ?? "ok"}`;
  return `${marks.lacks} ${result.failure?.code ?? "failed"}`;
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

function nameIn(payload: unknown): string {
  const isNamed = typeof payload === "object" && payload !== null && "toolName" in payload;
  return isNamed ? String(payload.toolName) : "";
}

/** `ambit cancel`: ends a running or queued run early. It still has its result. @param typed its id, or as much of it as is unique */
export async function cancel(typed: string, options: RunOptions): Promise<number> {
  const client = new ServerClient(options);
  const runId = await withRunMeant(client, typed, options, async (id) => {
    await client.json("POST", pathOfRun(id, "cancel", options));
    return id;
  });
  const project = options.project === undefined ? "" : ` --project ${options.project}`;
  process.stdout.write(`cancelled; \`ambit attach ${shortId(runId)}${project}\` shows its result\n`);
  return exitCodes.ok;
}
