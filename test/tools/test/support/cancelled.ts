import type { AgentEvent } from "@ambit/core";
import type { Runner } from "@ambit/runner";
import { expect } from "vitest";
import type { LiveRun } from "./live-run.js";

/** Cancels a run at its first event of a type, and expects one result of the run and of each call. */
export async function cancelled(runner: Runner, begun: LiveRun, when: AgentEvent["type"]): Promise<void> {
  await begun.until(when);
  runner.cancel(begun.id);
  expect(await begun.result).toMatchObject({ ok: true, stopReason: "cancelled" });
  expect(begun.events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
  const calls = begun.of("tool_call").map(({ id }) => id);
  expect(begun.of("tool_result").map(({ id }) => id)).toEqual(calls);
}
