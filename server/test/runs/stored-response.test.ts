import { failureCodeSchema, failureStatuses } from "@ambit/core";
import { expect, it } from "vitest";
import { statusOfResult } from "../../src/http/runs/stored-response.js";

it.each(failureCodeSchema.options)(
  "a result that failed with %s has its status when it is given again",
  (code) => {
    const failure = { code, retryable: false };
    expect(statusOfResult({ ok: false, runId: "r", events: [], error: "failed", failure })).toBe(
      failureStatuses[code],
    );
  },
);

it("a good result is 200, and a failure without a code is the server's", () => {
  expect(statusOfResult({ ok: true, runId: "r", events: [] })).toBe(200);
  expect(statusOfResult({ ok: false, runId: "r", events: [], error: "failed" })).toBe(500);
});
