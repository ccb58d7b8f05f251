import type { CallToolResult, InputRequests } from "@modelcontextprotocol/server";
import type { Outcome } from "./outcome.js";
import type { RunInfo } from "./runs.js";

/** SEP-2663, of the 2026-07-28 protocol. */
export const tasksExtension = "io.modelcontextprotocol/tasks";

/** Milliseconds that a client waits between two looks at a task. */
const pollIntervalMs = 1_000;

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** What a run is as a task: its handle is the run's id, and it is there as long as the run is stored. */
interface TaskState {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
}

/** @param outcome of a run that has ended @param isOpen whether a form of the run waits for its user */
export function taskState(info: RunInfo, outcome: Outcome | undefined, isOpen: boolean): TaskState {
  const { runId, state, createdAt, startedAt, endedAt } = info;
  return {
    taskId: runId,
    status: statusOf(outcome, isOpen),
    ...(state === "queued" ? { statusMessage: "The run waits for a slot." } : {}),
    createdAt,
    lastUpdatedAt: endedAt ?? startedAt ?? createdAt,
  };
}

function statusOf(outcome: Outcome | undefined, isOpen: boolean): TaskStatus {
  if (outcome === undefined) return isOpen ? "input_required" : "working";
  if (outcome.status === "cancelled") return "cancelled";
  return outcome.error === undefined ? "completed" : "failed";
}

/** A task of the 2025-11-25 protocol. */
export function legacyTask(state: TaskState) {
  return { ...state, ttl: null, pollInterval: pollIntervalMs };
}

/** What a task of the 2026-07-28 protocol has beside its state. */
interface TaskContents {
  readonly result?: CallToolResult;
  readonly inputRequests?: InputRequests;
}

/** A task of the 2026-07-28 protocol, where `failed` is kept for errors of the protocol, and a run that failed has a result. */
export function modernTask(state: TaskState, { result, inputRequests }: TaskContents = {}) {
  const status = state.status === "failed" ? "completed" : state.status;
  return {
    ...state,
    status,
    ttlMs: null,
    pollIntervalMs,
    ...(status === "completed" && result !== undefined
      ? { result: { resultType: "complete", ...result } }
      : {}),
    ...(status === "input_required" && inputRequests !== undefined ? { inputRequests } : {}),
  };
}
