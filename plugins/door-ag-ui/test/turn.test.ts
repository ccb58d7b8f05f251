import { type BaseEvent, EventType, verifyEvents } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import type { AgentEvent, StreamRecord } from "@ambit/client";
import { from, lastValueFrom, toArray } from "rxjs";
import { describe, expect, it } from "vitest";
import type { AgUiEvent } from "../src/events.js";
import { beginTurn, mapRecord, type TurnBeginning } from "../src/turn.js";

type Result = Extract<StreamRecord, { kind: "result" }>["result"];

const ok: Result = { ok: true, runId: "r", output: "", events: [], stopReason: "end_turn" };
const begins: TurnBeginning = { threadId: "t", runId: "r" };
const started = { type: "RUN_STARTED", threadId: "t", runId: "r", protocolVersion: "1.0" };

/** The events of one run, each of which AG-UI's own schema and its own order of events accept. */
async function mapped(events: readonly AgentEvent[], result = ok, beginning = begins): Promise<AgUiEvent[]> {
  let [turn, added] = beginTurn(beginning);
  const all = [...added];
  const records: StreamRecord[] = [
    ...events.map((event) => ({ kind: "event" as const, event })),
    { kind: "result" as const, result },
  ];
  for (const record of records) {
    [turn, added] = mapRecord(turn, record);
    all.push(...added);
  }
  const valid = all.map((event): BaseEvent => EventSchemas.parse(event));
  await lastValueFrom(from(valid).pipe(verifyEvents(false), toArray()));
  return all;
}

const finished = (outcome: object, more: object = {}) => ({
  type: "RUN_FINISHED",
  threadId: "t",
  runId: "r",
  outcome,
  result: { output: "", stopReason: "end_turn", receipt: undefined, ...more },
});

const call = { type: "tool_call", id: "c", name: "add", input: { a: 1 } } as const;
const announced = [
  { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "add" },
  { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"a":1}' },
  { type: "TOOL_CALL_END", toolCallId: "c" },
];
const resultOf = (toolCallId: string, content: string, metadata?: object) => ({
  type: "TOOL_CALL_RESULT",
  messageId: `r.${toolCallId}.result`,
  toolCallId,
  role: "tool",
  content,
  ...(metadata && { metadata }),
});
const asks = (
  kind: "user_approval" | "user_input" | "client_tool",
  payload: Record<string, unknown>,
): AgentEvent => ({
  type: "interaction_request",
  id: "ask_1",
  kind,
  payload,
});
const paused: Result = { ...ok, stopReason: "paused" };

describe("a record of a run's log", () => {
  it.each<[string, readonly AgentEvent[], readonly object[]]>([
    [
      "a text in pieces, with a block id of this run",
      [
        { type: "message_start", id: "message-1" },
        { type: "message_delta", id: "message-1", delta: "hi" },
        { type: "message_delta", id: "message-1", delta: "" },
        { type: "message_end", id: "message-1" },
      ],
      [
        { type: "TEXT_MESSAGE_START", messageId: "r.message-1", role: "assistant" },
        { type: "TEXT_MESSAGE_CONTENT", messageId: "r.message-1", delta: "hi" },
        { type: "TEXT_MESSAGE_END", messageId: "r.message-1" },
      ],
    ],
    [
      "whole texts and thoughts",
      [
        { type: "thought", text: "hm" },
        { type: "message", text: "hi" },
        { type: "message", text: "" },
      ],
      [
        { type: "REASONING_START", messageId: "r.whole-1" },
        { type: "REASONING_MESSAGE_START", messageId: "r.whole-1", role: "reasoning" },
        { type: "REASONING_MESSAGE_CONTENT", messageId: "r.whole-1", delta: "hm" },
        { type: "REASONING_MESSAGE_END", messageId: "r.whole-1" },
        { type: "REASONING_END", messageId: "r.whole-1" },
        { type: "TEXT_MESSAGE_START", messageId: "r.whole-2", role: "assistant" },
        { type: "TEXT_MESSAGE_CONTENT", messageId: "r.whole-2", delta: "hi" },
        { type: "TEXT_MESSAGE_END", messageId: "r.whole-2" },
      ],
    ],
    [
      "a text that the run ends in",
      [{ type: "thought_start", id: "t" }],
      [
        { type: "REASONING_START", messageId: "r.t" },
        { type: "REASONING_MESSAGE_START", messageId: "r.t", role: "reasoning" },
        { type: "REASONING_MESSAGE_END", messageId: "r.t" },
        { type: "REASONING_END", messageId: "r.t" },
      ],
    ],
    [
      "a call with its data",
      [call, { type: "tool_result", id: "c", output: "1", data: { sum: 1 } }],
      [...announced, resultOf("c", '{"sum":1}')],
    ],
    [
      "a denied call",
      [call, { type: "tool_result", id: "c", output: "no", isError: true, denied: true, deniedBy: "rule" }],
      [...announced, resultOf("c", "no", { isError: true, denied: true, deniedBy: "rule" })],
    ],
    [
      "a call that an answer resumes, under the id that the thread has",
      [
        { ...call, resumes: "ask_0" },
        { type: "interaction_response", id: "ask_0", kind: "user_approval", payload: { approved: true } },
        { type: "tool_result", id: "c", output: "1" },
      ],
      [resultOf("ask_0", "1")],
    ],
    [
      "the plan, as a part of the state",
      [
        { type: "data", name: "plan", data: [1] },
        { type: "data", name: "plan", data: [2] },
      ],
      [
        { type: "STATE_SNAPSHOT", snapshot: { plan: [1] } },
        { type: "STATE_DELTA", delta: [{ op: "add", path: "/plan", value: [2] }] },
      ],
    ],
    [
      "other data, and what a command prints",
      [
        { type: "data", name: "setup", data: {} },
        { type: "tool_output", id: "c", delta: "x" },
        { type: "turn", turnId: "t" },
      ],
      [
        { type: "CUSTOM", name: "data.setup", value: {} },
        { type: "CUSTOM", name: "tool_output", value: { id: "c", delta: "x" } },
      ],
    ],
  ])("maps %s", async (_what, events, expected) => {
    expect(await mapped(events)).toEqual([started, ...expected, finished({ type: "success" })]);
  });

  it("keeps the application's state beside the plan, and its own tools' results as they are", async () => {
    const events: AgentEvent[] = [
      { type: "data", name: "plan", data: [1] },
      { ...call, resumes: "ask_0" },
      { type: "tool_result", id: "c", output: "12A" },
    ];
    const beginning = { ...begins, state: { cart: 1 }, answeredCalls: new Set(["ask_0"]) };
    expect(await mapped(events, ok, beginning)).toEqual([
      started,
      { type: "STATE_DELTA", delta: [{ op: "add", path: "/plan", value: [1] }] },
      finished({ type: "success" }),
    ]);
  });
});

describe("the end of a run", () => {
  const approval = asks("user_approval", { toolName: "book", input: { seat: 1 } });
  const form = { type: "object", properties: { name: { type: "string" } } };

  it.each<[string, AgentEvent[], object]>([
    [
      "an approval",
      [approval],
      {
        type: "interrupt",
        interrupts: [
          {
            id: "ask_1",
            reason: "tool_call",
            message: "May book be called?",
            toolCallId: "ask_1",
            responseSchema: expect.objectContaining({ required: ["approved"] }),
            metadata: { toolName: "book", input: { seat: 1 } },
          },
        ],
      },
    ],
    [
      "an input",
      [asks("user_input", { input: { message: "Your name?", form } })],
      {
        type: "interrupt",
        interrupts: [{ id: "ask_1", reason: "input_required", message: "Your name?", responseSchema: form }],
      },
    ],
    [
      "the application's own tool",
      [asks("client_tool", {})],
      { type: "success", pendingToolCallIds: ["ask_1"] },
    ],
    [
      "nothing, where every question was answered",
      [approval, { type: "interaction_response", id: "ask_1", kind: "user_approval" }],
      { type: "success", pendingToolCallIds: [] },
    ],
  ])("that has paused names what it waits for: %s", async (_what, events, outcome) => {
    expect(await mapped(events, paused)).toEqual([started, finished(outcome, { stopReason: "paused" })]);
  });

  it("that was cancelled says so, and one that failed has its code and words for its user", async () => {
    const cancelled = await mapped([], { ...ok, stopReason: "cancelled" });
    expect(cancelled.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
    const failure = { code: "model_failed" as const, retryable: true };
    const events = await mapped([], { ...ok, ok: false, error: "connect 10.0.0.1: refused", failure });
    expect(events.at(-1)).toEqual({
      type: "RUN_ERROR",
      code: "model_failed",
      message: "The model's provider failed. Try again in a moment. (Run r)",
    });
    expect(Object.values(EventType)).toEqual(
      expect.arrayContaining([...new Set(events.map(({ type }) => type))]),
    );
  });

  it("has the usage of its model", async () => {
    const usage = { type: "usage", input: 1, cached: 2, output: 3, total: 6 } as const;
    expect((await mapped([usage], { ...ok, model: "m" })).at(-1)).toMatchObject({
      usage: [{ model: "m", inputTokens: 1, cachedInputTokens: 2, outputTokens: 3, totalTokens: 6 }],
    });
  });
});
