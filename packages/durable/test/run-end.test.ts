import type { RunResult } from "@ambit/core/contract";
import { describe, expect, it, test } from "vitest";
import { runSummarySchema } from "../src/index.js";
import { runEnd } from "../src/recorder.js";

const run = { id: "r", session: undefined, project: undefined, webhook: undefined };
const result: RunResult = { ok: true, runId: "r", events: [], sessionId: "s" };

test.each<[outcome: string, Partial<RunResult>]>([
  ["completed", { stopReason: "end_turn" }],
  ["completed", { stopReason: "max_turn_requests" }],
  ["completed", {}],
  ["paused", { stopReason: "paused" }],
  ["cancelled", { stopReason: "cancelled" }],
  ["failed", { ok: false, failure: { code: "model_failed", retryable: true } }],
  ["failed", { ok: false, failure: { code: "run_cancelled", retryable: true } }],
])("a run has %s with %j", (outcome, more) => {
  expect(runEnd(run, { ...result, ...more }).outcome).toBe(outcome);
});

describe("a summary", () => {
  const summaryOf = (more: Partial<RunResult>) =>
    runSummarySchema.parse(JSON.parse(runEnd(run, { ...result, ...more }).summary));

  it("quotes the end of what the agent said, or the begin of the error, in whole characters", () => {
    expect(summaryOf({ output: `😀${"x".repeat(199)}` }).excerpt).toBe("x".repeat(199));
    expect(summaryOf({ output: `${"x".repeat(300)}end` }).excerpt).toMatch(/^x{197}end$/);
    expect(summaryOf({ ok: false, output: "x", error: `No ${"x".repeat(196)}😀` }).excerpt).toMatch(
      /^No x{196}$/,
    );
  });

  it("stays small, whatever the agent says", () => {
    const long = "x".repeat(100_000);
    const usage = { input: 1, output: 2, cost: 0.5 };
    const { length } = runEnd(run, { ...result, output: long, stopReason: long, model: long, usage }).summary;
    expect(length).toBeLessThan(700);
  });
});
