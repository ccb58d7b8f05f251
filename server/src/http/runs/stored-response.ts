import type { ServerResponse } from "node:http";
import {
  type AgentEvent,
  failureStatuses,
  idOfRun,
  type RunResult,
  runResultSchema,
  webhookEventSchema,
} from "@ambit/core";
import { type RecordedRuns, type RunInfo, recordsIn, runSummarySchema } from "@ambit/durable";
import type { Delivery, StoredRun } from "@ambit/durable/store";
import { coalesced } from "@ambit/runner";
import { sendLargeJson } from "../response/send.js";
import type { ServerContext } from "../server-context.js";

export function statusOfResult({ ok, failure }: RunResult): number {
  if (ok) return 200;
  return failureStatuses[failure?.code ?? "internal"];
}

/** The stored result. @throws Error if another version stored it in a form that can't be read */
export function resultOf({ result }: StoredRun): RunResult | undefined {
  return result === undefined ? undefined : runResultSchema.parse(JSON.parse(result));
}

/** The run's result with its events, as the caller that waited for it got it. */
export async function sendStoredResult(
  { runner, unread }: Pick<ServerContext, "runner" | "unread">,
  runs: RecordedRuns,
  run: StoredRun,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const result = resultOf(run);
  if (result === undefined) return;
  const events = await coalesced(eventsOf(runs, run.id, signal), runner.options.limits.resultCharacters);
  // Its events count as much again.
  using _unread = unread.hold(2 * (run.result?.length ?? 0), response);
  const headers = { "x-ambit-run-id": idOfRun(run.id) };
  await sendLargeJson(response, statusOfResult(result), { ...result, events }, headers);
}

async function* eventsOf(runs: RecordedRuns, id: string, signal: AbortSignal): AsyncGenerator<AgentEvent> {
  const first = await runs.firstEventOf(id, signal);
  if (first > 1) yield { type: "data", name: "truncated", data: { events: first - 1, characters: 0 } };
  for await (const records of runs.follow(id, first - 1, signal)) {
    for (const record of recordsIn(records)) if (record.kind === "event") yield record.event;
  }
}

/** A run in a list. */
export function summaryOf(run: StoredRun): Omit<RunInfo, "result"> {
  const { id, state, harness, sandbox, session, project, fence, events, createdAt, startedAt, endedAt } = run;
  return {
    runId: idOfRun(id),
    state,
    harness,
    sandbox,
    sessionId: session,
    projectId: project,
    fence,
    events,
    createdAt: timeOf(createdAt),
    startedAt: startedAt === undefined ? undefined : timeOf(startedAt),
    endedAt: endedAt === undefined ? undefined : timeOf(endedAt),
    openQuestions: run.openQuestions,
    outcome: run.outcome,
    summary: run.summary === undefined ? undefined : runSummarySchema.parse(JSON.parse(run.summary)),
  };
}

/** A message of a run's webhook, in its wire format. */
export function deliveryInfo(delivery: Delivery): NonNullable<RunInfo["deliveries"]>[number] {
  const { id, event, host, state, attempts, status, error, createdAt, dueAt } = delivery;
  return {
    id,
    event: webhookEventSchema.parse(event),
    host,
    state,
    attempts,
    status,
    error,
    createdAt: timeOf(createdAt),
    dueAt: state === "pending" ? timeOf(dueAt) : undefined,
  };
}

export const timeOf = (milliseconds: number): string => new Date(milliseconds).toISOString();
