import type { AmbitClient, Schema } from "@ambit/client";
import { age, duration, marks } from "../display/layout.js";
import { shortId } from "../display/short-id.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { connect, type RunOptions } from "../server-client.js";
import { withRunMeant } from "../typed-id.js";

export interface RunsOptions extends RunOptions {
  readonly state?: RunState;
  readonly session?: string;
  /** Only those that failed. */
  readonly failed?: boolean;
  /** Rows, the newest first. Default 20. */
  readonly limit?: number;
  readonly json?: boolean;
}

const defaultLimit = 20;
/** The most that a server lists at a time. */
const maxPage = 1_000;

type RunInfo = Schema<"RunInfo">;
type RunState = RunInfo["state"];
type ListedRun = Schema<"RunsResponse">["runs"][number];

/** `ambit runs`: the latest runs of a server with their outcomes, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = connect(options);
  const { session: sessionId, limit = defaultLimit } = options;
  // One more shows whether there are more.
  const newest = await runsFrom(client, limit + 1, options);
  const listed = newest.slice(0, limit);
  const open = await openQuestions(client, sessionId);
  if (options.json === true) {
    const rows = listed.map((run) => ({ ...run, ...outcomeFields(run) }));
    process.stdout.write(`${JSON.stringify({ runs: rows, interactions: open }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  process.stdout.write(runsTable(listed, open, Date.now()));
  if (newest.length > limit) process.stdout.write(`\nThe latest ${limit}: \`--limit\` shows more.\n`);
  return exitCodes.ok;
}

function outcomeFields({ outcome, summary }: ListedRun) {
  if (outcome === undefined) return {};
  return { ok: outcome !== "failed", stopReason: summary?.stopReason, failure: summary?.failure };
}

/** The newest that the options ask for. */
async function runsFrom(
  client: AmbitClient,
  count: number,
  { state, session: sessionId, failed = false }: RunsOptions,
): Promise<readonly ListedRun[]> {
  const runs: ListedRun[] = [];
  const filter = {
    limit: Math.min(count, maxPage),
    ...(failed ? { outcome: "failed" as const } : {}),
    ...(state === undefined ? {} : { state }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
  for await (const run of client.eachRun(filter)) if (runs.push(run) === count) break;
  return runs;
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
  const questionRows = open.map(({ id, kind, runId, payload, createdAt }) => [
    shortId(id, questionIds),
    kind,
    shortId(runId, ids),
    nameIn(payload),
    age(now - Date.parse(createdAt)),
  ]);
  const questions = table(["open question", "kind", "run", "tool", "asked"], questionRows, {
    ...options,
    shrinks: ["tool", "run"],
  });
  return `${shown}\n${questions}\n\`ambit answer\` takes a question's id, or as much of it as is unique.\n`;
}

/** `✔ end_turn`, `✖ model_failed`; for a run in progress, its state. */
function outcomeOf({ state, outcome, summary }: ListedRun): string {
  if (outcome === undefined) return state;
  if (outcome === "failed") return `${marks.lacks} ${summary?.failure ?? outcome}`;
  return `${marks.holds} ${summary?.stopReason ?? outcome}`;
}

/** The open questions of all runs, or of one session. */
export async function openQuestions(client: AmbitClient, sessionId?: string) {
  const session = sessionId === undefined ? {} : { sessionId };
  return await Array.fromAsync(client.eachInteraction({ state: "open", ...session }));
}

function nameIn(payload: unknown): string {
  const isNamed = typeof payload === "object" && payload !== null && "toolName" in payload;
  return isNamed ? String(payload.toolName) : "";
}

/** `ambit cancel`: ends a running or queued run early. It still has its result. @param typed its id, or as much of it as is unique */
export async function cancel(typed: string, options: RunOptions): Promise<number> {
  const client = connect(options);
  const runId = await withRunMeant(client, typed, async (id) => {
    await client.cancelRun(id);
    return id;
  });
  const project = options.project === undefined ? "" : ` --project ${options.project}`;
  process.stdout.write(`cancelled; \`ambit attach ${shortId(runId)}${project}\` shows its result\n`);
  return exitCodes.ok;
}
