import {
  type Delivery,
  questionStates,
  type RunHead,
  type RunStateName,
  type RunWebhook,
  runOutcomeSchema,
  type StoredInteraction,
  type StoredRun,
  type StoredSession,
} from "@ambit/durable/store";
import { Columns, type Row } from "./database.js";
import { sql } from "./query.js";

const runStates: readonly RunStateName[] = ["queued", "running", "ended"];

const openQuestions = sql`(SELECT COUNT(*) FROM ambit_interactions i
  WHERE i.run_id = ambit_runs.id AND i.state = 'open') AS open_questions`;

/** All columns of a run, after `SELECT`. */
export const wholeRun = sql`ambit_runs.*, ${openQuestions} FROM ambit_runs`;

/** The columns of a run in a list, without results, requests and recoveries: a page of those could fill the memory. */
export const listedRun = sql`id, project, session, state, replica, fence, digest, harness, sandbox, webhook, trace,
  cancel_requested, events, size, created_at, started_at, ended_at, outcome, summary, ${openQuestions},
  CAST(NULL AS TEXT) AS sealed_recovery, CAST(NULL AS TEXT) AS sealed_copy, CAST(NULL AS TEXT) AS result FROM ambit_runs`;

export function runOf(row: Row): StoredRun {
  const columns = new Columns(row);
  return {
    ...headOf(row),
    project: columns.optionalText("project"),
    session: columns.optionalText("session"),
    replica: columns.text("replica"),
    digest: columns.text("digest"),
    harness: columns.text("harness"),
    sandbox: columns.text("sandbox"),
    webhook: webhookOf(columns.optionalText("webhook")),
    trace: columns.optionalText("trace"),
    sealedRecovery: columns.optionalText("sealed_recovery"),
    sealedCopy: columns.optionalText("sealed_copy"),
    size: columns.number("size"),
    cancelRequested: columns.number("cancel_requested") !== 0,
    createdAt: columns.number("created_at"),
    startedAt: columns.optionalNumber("started_at"),
    endedAt: columns.optionalNumber("ended_at"),
    openQuestions: columns.number("open_questions"),
    outcome: columns.optionalOneOf("outcome", runOutcomeSchema.options),
    summary: columns.optionalText("summary"),
    result: columns.optionalText("result"),
  };
}

export function headOf(row: Row): RunHead {
  const columns = new Columns(row);
  return {
    id: columns.text("id"),
    state: columns.oneOf("state", runStates),
    fence: columns.number("fence"),
    events: columns.number("events"),
  };
}

export function interactionOf(row: Row): StoredInteraction {
  const columns = new Columns(row);
  return {
    id: columns.text("id"),
    runId: columns.text("run_id"),
    project: columns.optionalText("project"),
    session: columns.optionalText("session"),
    kind: columns.text("kind"),
    payload: columns.text("payload"),
    state: columns.oneOf("state", questionStates),
    answer: columns.optionalText("answer"),
    createdAt: columns.number("created_at"),
    answeredAt: columns.optionalNumber("answered_at"),
    answerer: columns.optionalText("answerer"),
  };
}

export function sessionOf(row: Row): StoredSession {
  const columns = new Columns(row);
  return {
    // A primary key can't be NULL: the empty text means no project.
    project: columns.text("project") || undefined,
    session: columns.text("session"),
    sandbox: columns.text("sandbox"),
    replica: columns.text("replica"),
    address: columns.text("address"),
    createdAt: columns.number("created_at"),
    usedAt: columns.number("used_at"),
  };
}

export function deliveryOf(row: Row): Delivery {
  const columns = new Columns(row);
  return {
    id: columns.text("id"),
    runId: columns.text("run_id"),
    project: columns.optionalText("project"),
    target: columns.text("url"),
    host: columns.text("host"),
    event: columns.text("event"),
    body: columns.text("body"),
    state: columns.oneOf("state", ["pending", "delivered", "failed"]),
    attempts: columns.number("attempts"),
    earlierAttempts: columns.number("earlier_attempts"),
    status: columns.optionalNumber("last_status"),
    error: columns.optionalText("error"),
    createdAt: columns.number("created_at"),
    dueAt: columns.number("due_at"),
  };
}

/** Written by `createRun`. */
function webhookOf(text: string | undefined): RunWebhook | undefined {
  return text === undefined ? undefined : JSON.parse(text);
}
