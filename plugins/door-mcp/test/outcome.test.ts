import { type AgentEvent, AmbitError, type FailedResult, type RunResult } from "@ambit/client";
import { describe, expect, it } from "vitest";
import { failedOutcome, outcomeOf, outcomeSchema, progressOf, toolResultOf } from "../src/outcome.js";
import type { Question } from "../src/questions.js";

const base = { ok: true, runId: "r1", sessionId: "s1", events: [], messages: [] };
const question: Question = { id: "ask_1", kind: "user_approval", message: "The agent wants to call rm." };
const textOf = (outcome: Parameters<typeof toolResultOf>[0]) => {
  const [block] = toolResultOf(outcome).content;
  return block?.type === "text" ? block.text : undefined;
};

describe("the result of a run, for the model", () => {
  it.each<[string, Partial<RunResult>, string]>([
    ["what it said", { output: "Done.", stopReason: "end_turn" }, "Done.\n\n(run r1)"],
    ["nothing", { output: "", stopReason: "end_turn" }, "The agent ended without a text.\n\n(run r1)"],
    [
      "an early stop",
      { output: "So far", stopReason: "max_tokens" },
      "So far\n\nThe agent stopped early: max_tokens.\n\n(run r1)",
    ],
    ["a cancel", { output: "", stopReason: "cancelled" }, "The run was cancelled.\n\n(run r1)"],
    [
      "a question",
      { output: "", stopReason: "paused" },
      'The run waits for its user. Ask them, and pass on what they say with continue_run:\n- The agent wants to call rm.\n  {"id": "ask_1", "approved": true or false}\n\n(run r1)',
    ],
    [
      "a warning",
      { output: "Done.", stopReason: "end_turn", warnings: [{ message: "It isn't kept." }] },
      "Done.\n\nNote:\n- It isn't kept.\n\n(run r1)",
    ],
  ])("has %s", (_what, result, text) => {
    const outcome = outcomeOf({ ...base, ...result }, [question], new Map());
    expect(textOf(outcome)).toBe(text);
    expect(toolResultOf(outcome).isError).toBe(false);
    expect(outcomeSchema.parse(outcome)).toEqual(outcome);
  });

  it("is short, however much the agent said, which the structured content has whole", () => {
    const outcome = outcomeOf(
      { ...base, output: "a".repeat(200_000), stopReason: "end_turn" },
      [],
      new Map(),
    );
    expect(textOf(outcome)?.length).toBeLessThan(101_000);
    expect(outcome.output).toHaveLength(200_000);
  });
});

describe("a failure, for the model", () => {
  const gap = {
    actor: "local",
    capability: "network.deny" as const,
    reason: "no namespaces",
    fix: "allow them",
  };
  const failed = (failure: FailedResult["failure"], more: Partial<FailedResult> = {}): AmbitError =>
    new AmbitError("It can't be.", {
      code: failure.code,
      retryable: failure.retryable,
      result: { ok: false, error: "It can't be.", failure, ...more },
    });

  it.each<[string, AmbitError, string]>([
    [
      "refused",
      failed({ code: "boundary_refused", retryable: false, gaps: [gap] }),
      "The run was refused (boundary_refused): It can't be.\n- local · network.deny: no namespaces. Fix: allow them",
    ],
    [
      "refused",
      failed({ code: "request_invalid", retryable: false, issues: [{ path: "", message: "is empty" }] }),
      "The run was refused (request_invalid): It can't be.\n- the request: is empty",
    ],
    [
      "failed",
      failed({ code: "model_failed", retryable: true }, { runId: "r1", output: "So far" }),
      "So far\n\nThe run failed (model_failed): It can't be.\nThe same call may succeed later.\n\n(run r1)",
    ],
    [
      "cancelled",
      failed({ code: "run_cancelled", retryable: true }),
      "The run was cancelled (run_cancelled): It can't be.\nThe same call may succeed later.",
    ],
  ])("is %s", (status, error, text) => {
    const outcome = failedOutcome(error);
    expect(outcome.status).toBe(status);
    expect(textOf(outcome)).toBe(text);
    expect(toolResultOf(outcome).isError).toBe(true);
    expect(outcomeSchema.parse(outcome)).toEqual(outcome);
  });
});

type Said = {
  readonly [Type in AgentEvent["type"]]: readonly [Extract<AgentEvent, { type: Type }>, string | undefined];
};

/** One of each type, so that a new one is decided on here. */
const said: Said = {
  turn: [{ type: "turn", turnId: "t" }, undefined],
  message: [{ type: "message", text: " two\n lines " }, "two lines"],
  thought: [{ type: "thought", text: "hm" }, undefined],
  message_start: [{ type: "message_start", id: "m" }, undefined],
  message_delta: [{ type: "message_delta", id: "m", delta: "more" }, undefined],
  message_end: [{ type: "message_end", id: "m" }, "before"],
  thought_start: [{ type: "thought_start", id: "m" }, undefined],
  thought_delta: [{ type: "thought_delta", id: "m", delta: "hm" }, undefined],
  thought_end: [{ type: "thought_end", id: "m" }, undefined],
  tool_call: [
    { type: "tool_call", id: "c", name: "run", input: { timeout: 5, command: "ls" } },
    "calls run: ls",
  ],
  tool_output: [{ type: "tool_output", id: "c", delta: "a" }, undefined],
  tool_result: [{ type: "tool_result", id: "c", output: "a" }, undefined],
  interaction_request: [
    { type: "interaction_request", id: "ask_1", kind: "user_approval", payload: { toolName: "run" } },
    "waits for an answer: run",
  ],
  interaction_response: [{ type: "interaction_response", id: "ask_1", kind: "user_approval" }, undefined],
  interaction_expired: [{ type: "interaction_expired", id: "ask_1", kind: "user_approval" }, undefined],
  boundary_decision: [
    {
      type: "boundary_decision",
      target: "a.example:443",
      allowed: false,
      reason: "it isn't listed",
      count: 1,
    },
    "the boundary refused a.example:443: it isn't listed",
  ],
  commands: [{ type: "commands", commands: [] }, undefined],
  mode: [{ type: "mode", mode: "plan" }, undefined],
  configuration: [{ type: "configuration", options: [] }, undefined],
  data: [
    {
      type: "data",
      name: "plan",
      data: {
        entries: [
          { content: "look", status: "completed" },
          { content: "do", status: "in_progress" },
        ],
      },
    },
    "plan 1/2: do",
  ],
  file: [{ type: "file", url: "/runs/r/files/a.txt", mediaType: "text/plain", path: "a.txt" }, "file a.txt"],
  usage: [{ type: "usage", input: 1 }, undefined],
  mcp_server_failed: [
    {
      type: "mcp_server_failed",
      serverName: "docs",
      reasonCode: "handshake_unreachable",
      message: "refused",
    },
    "the MCP server docs failed: refused",
  ],
  error: [{ type: "error", message: "no" }, undefined],
  done: [{ type: "done", stopReason: "end_turn" }, undefined],
};

describe("what progress says", () => {
  it.each(Object.entries(said))("of %s", (_type, [event, message]) => {
    expect(progressOf({ text: "before" }, event)[1]).toBe(message);
  });

  it("is the beginning of what the agent says, as one message", () => {
    const events: readonly AgentEvent[] = [
      { type: "message_start", id: "m" },
      { type: "message_delta", id: "m", delta: "a".repeat(150) },
      { type: "message_delta", id: "m", delta: "b".repeat(150) },
      { type: "message_end", id: "m" },
    ];
    const heard: string[] = [];
    let spoken = { text: "" };
    for (const event of events) {
      const [next, message] = progressOf(spoken, event);
      spoken = next;
      if (message !== undefined) heard.push(message);
    }
    expect(heard).toEqual(["a".repeat(150) + "b".repeat(50)]);
  });
});
