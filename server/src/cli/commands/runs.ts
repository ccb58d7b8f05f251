import type { AmbitClient, Schema } from "@ambit/client";
import { age, duration } from "../display/duration.js";
import { marks } from "../display/layout.js";
import { shortId } from "../display/short-id.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { connect, isMissing, type RunOptions } from "../server-client.js";
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

/** Runs that `--failed` looks at, at most. */
const maxLookedAt = 1_000;

/** Results that are read at the same time. */
const atOnce = 8;

type RunInfo = Schema<"RunInfo">;
type RunState = RunInfo["state"];
type ListedRun = Schema<"RunsResponse">["runs"][number] & Pick<RunInfo, "result">;

/** `ambit runs`: the latest runs of a server with their outcomes, and its open questions. */
export async function runs(options: RunsOptions): Promise<number> {
  const client = connect(options);
  const { session: sessionId, limit = defaultLimit } = options;
  const { listed, isAll } = await latestRuns(client, limit, options);
  const open = await openQuestions(client, sessionId);
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
  client: AmbitClient,
  limit: number,
  { state, session: sessionId, failed = false }: RunsOptions,
): Promise<{ readonly listed: readonly ListedRun[]; readonly isAll: boolean }> {
  const listed: ListedRun[] = [];
  let lookedAt = 0;
  const runs = client.eachRun({
    // One more shows whether there are more.
    limit: failed ? atOnce * 8 : limit + 1,
    ...(failed ? { state: "ended" as const } : state === undefined ? {} : { state }),
    ...(sessionId === undefined ? {} : { sessionId }),
  });
  for await (const batch of batches(runs, atOnce)) {
    for (const run of await Promise.all(batch.map((listedRun) => withResult(client, listedRun)))) {
      if (failed && run.result?.ok !== false) continue;
      if (listed.length === limit) return { listed, isAll: false };
      listed.push(run);
    }
    lookedAt += batch.length;
    if (failed && lookedAt >= maxLookedAt) return { listed, isAll: false };
  }
  return { listed, isAll: true };
}

async function* batches<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    if (batch.push(item) < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** A list has no results. */
async function withResult(client: AmbitClient, run: ListedRun): Promise<ListedRun> {
  if (run.state !== "ended") return run;
  try {
    const { result } = await client.runInfo(run.runId, { projectId: run.projectId });
    return { ...run, result };
  } catch (error) {
    // It was deleted meanwhile.
    if (isMissing(error)) return run;
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

/** Of all runs, or of one session. */
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
