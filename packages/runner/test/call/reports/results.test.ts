import { describe, expect, it, test } from "vitest";
import { type CallState, unsettledTexts } from "../../../src/call/call.js";
import { openResult, withOutcome } from "../../../src/call/call-events.js";

const { deferred, interrupted, unknown } = unsettledTexts;

describe("the result of a call that the runner answered", () => {
  const event = {
    type: "tool_result",
    id: "a",
    output: "<wrapped>ours</wrapped>",
    data: { envelope: 1 },
  } as const;
  const answered = { name: "finished", outcome: { output: "ours", isError: false } } as const;
  it.each([
    ["our words, without the agent's data", event, answered, { output: "ours" }],
    ["our data", event, { ...answered, data: 7 }, { output: "ours", data: 7 }],
    [
      "our failure",
      event,
      { name: "finished", outcome: { output: "no", isError: true } },
      { output: "no", isError: true },
    ],
    [
      "what the agent failed itself",
      { type: "tool_result", id: "a", output: "timed out", isError: true },
      answered,
      { output: "timed out", isError: true },
    ],
    [
      "its own account of a call that we saw no end of",
      event,
      { name: "allowed", claimed: true },
      { output: event.output, data: event.data },
    ],
  ] as const)("is %s", (_what, reported, handled, expected) => {
    expect(withOutcome(reported, handled, false)).toEqual({ type: "tool_result", id: "a", ...expected });
  });

  it("and nothing from the agent under an id that the runner issued", () => {
    const failed = { ...event, isError: true };
    expect(withOutcome(failed, answered, true)).toEqual({
      type: "tool_result",
      id: "a",
      output: "ours",
      isError: false,
    });
  });

  it("and is marked as denied if it was denied", () => {
    const state = { name: "denied", by: "rule", outcome: { output: "no", isError: true } } as const;
    expect(withOutcome(event, state, false)).toEqual({
      type: "tool_result",
      id: "a",
      output: "no",
      isError: true,
      denied: true,
      deniedBy: "rule",
      settled: "denied",
    });
  });
});

describe("the result of a call that was open at the end of the turn", () => {
  const outcome = { output: "ours", isError: false };
  const claimed = { name: "pending", claimed: true } as const;
  test.each<[string, CallState, string | undefined, string | undefined]>([
    ["nothing decided", claimed, deferred, interrupted],
    ["allowed", { name: "allowed", claimed: false }, unknown, interrupted],
    ["executing", { name: "executing" }, unknown, interrupted],
    ["asked", { name: "asked", resumes: claimed }, deferred, deferred],
    ["parked", { name: "parked" }, undefined, deferred],
    ["denied before it was called", { name: "denied", by: "rule" }, deferred, deferred],
    ["denied", { name: "denied", by: "rule", outcome: { output: "no", isError: true } }, "no", "no"],
    ["finished", { name: "finished", outcome }, "ours", "ours"],
  ])("%s", (_what, state, paused, stopped) => {
    expect(openResult({ publicId: "a", state }, "paused")?.output).toBe(paused);
    expect(openResult({ publicId: "a", state }, "interrupted")?.output).toBe(stopped);
    const isDenied = state.name === "denied" || undefined;
    expect(openResult({ publicId: "a", state }, "paused")?.denied).toBe(isDenied);
  });
});
