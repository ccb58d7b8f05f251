import type { AgentEvent, StreamRecord } from "@ambit/client";
import {
  asSchema,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
  validateUIMessages,
} from "ai";
import { describe, expect, it } from "vitest";
import type { Chunk } from "../src/chunks.js";
import {
  askedMessage,
  beginMessage,
  beginTurn,
  emptyMessage,
  type MessageState,
  mapRecord,
} from "../src/message.js";

type Result = Extract<StreamRecord, { kind: "result" }>["result"];

const ok: Result = { ok: true, runId: "r1", output: "", events: [], stopReason: "end_turn" };
const failed = (code: NonNullable<Result["failure"]>["code"], error: string): Result => ({
  ok: false,
  runId: "r1",
  events: [],
  error,
  failure: { code, retryable: false },
});
const paused: Result = { ...ok, stopReason: "paused" };

/** The chunks of one run. */
function mapped(events: readonly AgentEvent[], result: Result, before: MessageState) {
  let [state, chunks] = beginTurn(before);
  const all = [...chunks];
  const records = [
    ...events.map((event) => ({ kind: "event" as const, event })),
    { kind: "result" as const, result },
  ];
  for (const record of records) {
    [state, chunks] = mapRecord(state, record);
    all.push(...chunks);
  }
  return { state, chunks: all };
}

/** The message that the AI SDK makes of chunks, each of which its schema accepts. */
async function messageOf(chunks: readonly Chunk[], message?: UIMessage): Promise<UIMessage | undefined> {
  const valid: UIMessageChunk[] = [];
  for (const chunk of chunks) {
    const read = await asSchema(uiMessageChunkSchema).validate?.(chunk);
    if (read?.success !== true) throw new Error(`the AI SDK refuses ${JSON.stringify(chunk)}`);
    valid.push(read.value);
  }
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of valid) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last = message;
  for await (const next of readUIMessageStream({
    stream,
    terminateOnError: true,
    ...(message && { message }),
  }))
    last = next;
  return last;
}

const call = (id: string, name = "add", more: object = {}) =>
  ({ type: "tool_call", id, name, input: { a: 1 }, ...more }) as const;
const asked = (id: string, kind: "user_approval" | "client_tool" | "user_input", payload: object = {}) =>
  ({
    type: "interaction_request",
    id,
    kind,
    payload: { toolCallId: id, toolName: "add", input: { a: 1 }, ...payload },
  }) as const;
const answered = (id: string, approved?: boolean) =>
  ({
    type: "interaction_response",
    id,
    kind: approved === undefined ? "client_tool" : "user_approval",
    payload: { toolCallId: id, ...(approved === undefined ? {} : { approved }) },
  }) as const;
const returned = (id: string, more: object = { output: "2" }) =>
  ({ type: "tool_result", id, ...more }) as const;

const executed = { toolName: "add", input: { a: 1 }, providerExecuted: true, dynamic: true };
const dynamic = (toolCallId: string, more: object = {}) => ({
  type: "tool-input-available",
  toolCallId,
  ...executed,
  ...more,
});
const output = (toolCallId: string, value: unknown, more: object = {}) => ({
  type: "tool-output-available",
  toolCallId,
  output: value,
  ...more,
});
const error = (toolCallId: string, errorText: string) => ({
  type: "tool-output-error",
  toolCallId,
  errorText,
});
const request = (approvalId: string, toolCallId = approvalId, more: object = {}) => ({
  type: "tool-approval-request",
  approvalId,
  toolCallId,
  ...more,
});
const granted = (approvalId: string) => ({ type: "tool-approval-response", approvalId, approved: true });
const denied = (approvalId: string, reason: string, toolCallId = approvalId) => [
  { type: "tool-approval-response", approvalId, approved: false, reason },
  { type: "tool-output-denied", toolCallId },
];

/** What the events of a whole run add to a message, besides the chunks that every run has. */
const rows: readonly (readonly [string, readonly AgentEvent[], readonly object[], Result?])[] = [
  [
    "a text in pieces",
    [
      { type: "message_start", id: "m" },
      { type: "message_delta", id: "m", delta: "a" },
      { type: "message_delta", id: "m", delta: "b" },
      { type: "message_end", id: "m" },
    ],
    [
      { type: "text-start", id: "1-m" },
      { type: "text-delta", id: "1-m", delta: "a" },
      { type: "text-delta", id: "1-m", delta: "b" },
      { type: "text-end", id: "1-m" },
    ],
  ],
  [
    "a whole text, and a whole thought",
    [
      { type: "message", text: "a" },
      { type: "thought", text: "b" },
    ],
    [
      { type: "text-start", id: "1-whole" },
      { type: "text-delta", id: "1-whole", delta: "a" },
      { type: "text-end", id: "1-whole" },
      { type: "reasoning-start", id: "1-whole" },
      { type: "reasoning-delta", id: "1-whole", delta: "b" },
      { type: "reasoning-end", id: "1-whole" },
    ],
  ],
  [
    "a thought in pieces that the run's end cuts off",
    [
      { type: "thought_start", id: "t" },
      { type: "thought_delta", id: "t", delta: "a" },
    ],
    [
      { type: "reasoning-start", id: "1-t" },
      { type: "reasoning-delta", id: "1-t", delta: "a" },
      { type: "reasoning-end", id: "1-t" },
    ],
  ],
  [
    "what a subagent says and calls, apart from the answer",
    [
      call("c", "task"),
      { type: "message_start", id: "m", parentToolCallId: "c" },
      { type: "message_delta", id: "m", delta: "a" },
      { type: "message_end", id: "m" },
      call("d", "add", { parentToolCallId: "c" }),
      returned("d"),
      { type: "message", text: "b", parentToolCallId: "c" },
      returned("c"),
    ],
    [
      dynamic("c", { toolName: "task" }),
      { type: "reasoning-start", id: "1-m", providerMetadata: { ambit: { parentToolCallId: "c" } } },
      { type: "reasoning-delta", id: "1-m", delta: "a" },
      { type: "reasoning-end", id: "1-m" },
      dynamic("d", { toolMetadata: { parentToolCallId: "c" } }),
      output("d", "2"),
      { type: "reasoning-start", id: "1-whole", providerMetadata: { ambit: { parentToolCallId: "c" } } },
      { type: "reasoning-delta", id: "1-whole", delta: "b" },
      { type: "reasoning-end", id: "1-whole" },
      output("c", "2"),
    ],
  ],
  [
    "a call with its output as data, and how it is shown",
    [
      call("c", "add", { render: { kind: "component", component: "Sum" } }),
      returned("c", { output: "{}", data: { sum: 2 }, changes: [{ path: "a", newText: "b" }] }),
    ],
    [
      dynamic("c", { toolMetadata: { render: { kind: "component", component: "Sum" } } }),
      output("c", { sum: 2 }, { toolMetadata: { changes: [{ path: "a", newText: "b" }] } }),
    ],
  ],
  [
    "what a command prints, the last of it",
    [
      call("c", "run"),
      { type: "tool_output", id: "c", delta: "a" },
      { type: "tool_output", id: "c", delta: "b".repeat(10_000) },
      returned("c"),
    ],
    [
      dynamic("c", { toolName: "run" }),
      output("c", "a", { preliminary: true }),
      output("c", "b".repeat(8_192), { preliminary: true }),
      output("c", "2"),
    ],
  ],
  [
    "a call that fails",
    [call("c"), returned("c", { output: "no", isError: true })],
    [dynamic("c"), error("c", "no")],
  ],
  [
    "a call that fails in silence",
    [call("c"), returned("c", { isError: true })],
    [dynamic("c"), error("c", "The call failed.")],
  ],
  [
    "a call that a policy denies",
    [
      call("c"),
      returned("c", { output: "no", isError: true, denied: true, deniedBy: "policy", settled: "denied" }),
    ],
    [dynamic("c"), request("c", "c", { isAutomatic: true }), ...denied("c", "no")],
  ],
  [
    "calls without an outcome",
    [
      call("c"),
      returned("c", { output: "DEFERRED", isError: true, settled: "deferred" }),
      call("d"),
      returned("d", { output: "INTERRUPTED", isError: true, settled: "interrupted" }),
      call("e"),
      returned("e", { output: "UNKNOWN", isError: true, settled: "unknown" }),
      call("f"),
    ],
    [
      dynamic("c"),
      error("c", "This call didn't run: the turn paused for its user first."),
      dynamic("d"),
      error("d", "The turn was stopped before this call had a result. It may have run."),
      dynamic("e"),
      error("e", "This call was allowed and may have run. Its outcome isn't known."),
      dynamic("f"),
      error("f", "The run ended before this call had a result."),
    ],
  ],
  [
    "a call that waits for an approval, and what it would change",
    [
      call("ask_1"),
      asked("ask_1", "user_approval", { changes: [{ path: "a", newText: "b" }], earlierOutcome: "unknown" }),
    ],
    [
      dynamic("ask_1", { toolMetadata: { changes: [{ path: "a", newText: "b" }] } }),
      request("ask_1", "ask_1", {
        reason: "This call was allowed before and may have run: its turn ended before the outcome was known.",
      }),
    ],
    paused,
  ],
  [
    "a live approval, and a live denial",
    [
      call("ask_1"),
      asked("ask_1", "user_approval"),
      answered("ask_1", true),
      returned("ask_1"),
      call("ask_2"),
      asked("ask_2", "user_approval"),
      answered("ask_2", false),
      returned("ask_2", { output: "no", isError: true, denied: true }),
    ],
    [
      dynamic("ask_1"),
      request("ask_1"),
      granted("ask_1"),
      output("ask_1", "2"),
      dynamic("ask_2"),
      request("ask_2"),
      ...denied("ask_2", "no"),
    ],
  ],
  [
    "a call that was reported before its question",
    [
      call("c"),
      returned("c", { output: "DEFERRED", isError: true, settled: "deferred", movedTo: "ask_1" }),
      call("ask_1"),
      asked("ask_1", "user_approval"),
    ],
    [dynamic("c"), dynamic("c"), request("ask_1", "c")],
    paused,
  ],
  [
    "a client tool",
    [call("ask_1", "seat"), asked("ask_1", "client_tool", { toolName: "seat" })],
    [{ type: "tool-input-available", toolCallId: "ask_1", toolName: "seat", input: { a: 1 } }],
    paused,
  ],
  [
    "a client tool that was reported before its question",
    [
      call("c", "seat"),
      returned("c", { output: "DEFERRED", isError: true, settled: "deferred", movedTo: "ask_1" }),
      call("ask_1", "seat"),
      asked("ask_1", "client_tool", { toolName: "seat" }),
    ],
    [
      dynamic("c", { toolName: "seat" }),
      output("c", "The user's client executes this call."),
      { type: "tool-input-available", toolCallId: "ask_1", toolName: "seat", input: { a: 1 } },
    ],
    paused,
  ],
  [
    "a form",
    [asked("ask_1", "user_input", { toolName: "elicitation", input: { message: "Who?" } })],
    [
      {
        type: "tool-input-available",
        toolCallId: "ask_1",
        toolName: "elicitation",
        input: { message: "Who?" },
      },
    ],
    paused,
  ],
  [
    "questions that the agent takes back",
    [
      call("ask_1"),
      asked("ask_1", "user_approval"),
      { type: "interaction_expired", id: "ask_1", kind: "user_approval" },
      returned("ask_1", { output: "late" }),
      call("ask_2", "seat"),
      asked("ask_2", "client_tool"),
      { type: "interaction_expired", id: "ask_2", kind: "client_tool" },
    ],
    [
      dynamic("ask_1"),
      request("ask_1"),
      ...denied("ask_1", "The question is over without an answer."),
      { type: "tool-input-available", toolCallId: "ask_2", toolName: "seat", input: { a: 1 } },
      error("ask_2", "The question is over without an answer."),
    ],
  ],
  [
    "a call whose question didn't come",
    [call("ask_1"), returned("ask_1")],
    [dynamic("ask_1"), output("ask_1", "2")],
  ],
  [
    "an answer, an output and a result for a call that this message doesn't have",
    [answered("ask_9", true), returned("c"), { type: "tool_output", id: "c", delta: "a" }],
    [],
  ],
  [
    "files",
    [
      { type: "file", url: "data:text/plain,a", mediaType: "text/plain" },
      {
        type: "file",
        url: "/runs/r1/files/a.txt",
        mediaType: "text/plain",
        path: "a.txt",
        size: 1,
        sha256: "00",
      },
    ],
    [
      { type: "file", url: "data:text/plain,a", mediaType: "text/plain" },
      {
        type: "file",
        url: "/runs/r1/files/a.txt",
        mediaType: "text/plain",
        providerMetadata: { ambit: { path: "a.txt", size: 1, sha256: "00" } },
      },
    ],
  ],
  [
    "data, whose latest value counts where there is one",
    [
      { type: "data", name: "run", data: { runId: "r1" }, transient: true },
      { type: "data", name: "plan", data: { entries: [] } },
      { type: "data", name: "preview", data: { port: 80, url: "u" } },
      { type: "data", name: "notice", data: "n" },
      { type: "mode", mode: "plan" },
      { type: "commands", commands: [] },
      { type: "configuration", options: [] },
      { type: "boundary_decision", target: "a:1", allowed: false, reason: "r", count: 1 },
      { type: "mcp_server_failed", serverName: "s", reasonCode: "handshake_rejected", message: "m" },
    ],
    [
      { type: "data-run", data: { runId: "r1" }, transient: true },
      { type: "data-plan", id: "plan", data: { entries: [] } },
      { type: "data-preview", id: "preview-80", data: { port: 80, url: "u" } },
      { type: "data-notice", data: "n" },
      { type: "data-mode", data: { mode: "plan" }, transient: true },
      { type: "data-commands", data: { commands: [] }, transient: true },
      { type: "data-configuration", data: { options: [] }, transient: true },
      {
        type: "data-boundary_decision",
        data: { target: "a:1", allowed: false, reason: "r", count: 1 },
        transient: true,
      },
      {
        type: "data-mcp_server_failed",
        id: "s",
        data: { serverName: "s", reasonCode: "handshake_rejected", message: "m" },
      },
    ],
  ],
  [
    "nothing",
    [
      { type: "turn", turnId: "r1" },
      { type: "done", stopReason: "end_turn" },
      { type: "error", message: "the result has it" },
      Object({ type: "of_tomorrow", id: "x" }),
    ],
    [],
  ],
];

describe("what a run's log adds to a message", () => {
  const table = rows.map(([what, events, expected, result = ok]) => ({ what, events, expected, result }));
  it.each(table)("$what", async ({ events, expected, result }) => {
    const { chunks } = mapped(events, result, emptyMessage);
    const finishReason = result === paused ? "tool-calls" : "stop";
    expect(chunks).toEqual([
      { type: "start-step" },
      ...expected,
      { type: "finish-step" },
      { type: "finish", finishReason, messageMetadata: { runId: "r1" } },
    ]);
    const message = await messageOf([beginMessage("m1", "r1"), ...chunks]);
    expect(message).toMatchObject({ id: "m1", role: "assistant" });
    await validateUIMessages({ messages: [message] });
  });

  it("usage and receipt are data, and the usage is also in the message's metadata", async () => {
    const usage = { type: "usage", input: 3, cached: 1, output: 2, total: 5, cost: 0.1 } as const;
    const receipt: Result["receipt"] = Object({ sandbox: "local" });
    const { chunks } = mapped([usage], { ...ok, receipt, model: "m" }, emptyMessage);
    const { type: _type, ...data } = usage;
    expect(chunks).toEqual([
      { type: "start-step" },
      { type: "data-usage", id: "r1", data },
      { type: "data-receipt", id: "r1", data: { sandbox: "local" } },
      { type: "finish-step" },
      {
        type: "finish",
        finishReason: "stop",
        messageMetadata: {
          runId: "r1",
          model: "m",
          usage: { inputTokens: 3, cachedInputTokens: 1, outputTokens: 2, totalTokens: 5 },
        },
      },
    ]);
  });

  it.each([
    [{ ...ok, stopReason: "max_tokens" }, "length"],
    [{ ...ok, stopReason: "refusal" }, "content-filter"],
    [{ ...ok, stopReason: "max_turn_requests" }, "other"],
    [{ ...ok, stopReason: "cancelled" }, "interrupted"],
    [failed("run_cancelled", "stopped"), "interrupted"],
  ])("%j finishes it as %s", (result, finishReason) => {
    const { chunks } = mapped([], result, emptyMessage);
    expect(chunks.at(-1)).toMatchObject({ type: "finish", finishReason });
    expect(chunks.some(({ type }) => type === "abort")).toBe(finishReason === "interrupted");
  });

  it.each([
    [failed("harness_failed", "spawn /opt/agent ENOENT"), "The agent failed. Try again. (Run r1)"],
    [
      failed("boundary_refused", "local: EPERM"),
      "This chat's agent can't run here: the server can't guarantee what it must not do. (Run r1)",
    ],
    [failed("model_failed", "401 sk-…"), "The model's provider failed. Try again in a moment. (Run r1)"],
    [failed("request_invalid", "customTools[0].name is missing"), "customTools[0].name is missing"],
  ])("%j is an error whose text any user may read", (result, text) => {
    const { chunks } = mapped([], result, emptyMessage);
    expect(chunks.at(-1)).toEqual({ type: "error", errorText: text });
  });
});

describe("a message that answers continue", () => {
  const questions = [
    call("ask_1"),
    asked("ask_1", "user_approval"),
    call("ask_2", "seat"),
    asked("ask_2", "client_tool"),
  ];
  const continuation = [
    call("n1", "add", { resumes: "ask_1" }),
    answered("ask_1", true),
    returned("n1", { output: "3" }),
    call("n2", "seat", { resumes: "ask_2" }),
    answered("ask_2"),
    returned("n2", { output: '{"seat":"12A"}' }),
    { type: "message", text: "done" } as const,
  ];
  const expected = [
    { type: "start-step" },
    granted("ask_1"),
    output("ask_1", "3"),
    output("ask_2", { seat: "12A" }),
    { type: "text-start", id: "2-whole" },
    { type: "text-delta", id: "2-whole", delta: "done" },
    { type: "text-end", id: "2-whole" },
  ];

  it("has the outcomes in the parts that asked, by what the client has of it", async () => {
    const first = mapped(questions, paused, emptyMessage).chunks;
    const asking = await messageOf([beginMessage("m1", "r1"), ...first]);
    const before = askedMessage([{ toolCallId: "ask_1", approvalId: "ask_1" }, { toolCallId: "ask_2" }]);
    const { chunks } = mapped(continuation, ok, before);
    expect(chunks.slice(0, -2)).toEqual(expected);
    const message = await messageOf([beginMessage("m1", "r1.turn-2"), ...chunks], asking);
    expect(message).toMatchObject({
      id: "m1",
      parts: [
        { type: "step-start" },
        { toolCallId: "ask_1", state: "output-available", output: "3" },
        { type: "tool-seat", toolCallId: "ask_2", state: "output-available", output: { seat: "12A" } },
        { type: "step-start" },
        { text: "done" },
      ],
    });
    await validateUIMessages({ messages: [message] });
  });

  it("is the same by the logs of all its runs", () => {
    const { state } = mapped(questions, paused, emptyMessage);
    expect(mapped(continuation, ok, state).chunks.slice(0, -2)).toEqual(expected);
  });

  it("is denied where the user, a policy after the user, or an earlier run's answer says so", async () => {
    const before = askedMessage([{ toolCallId: "ask_1", approvalId: "ask_1" }]);
    const refused = returned("n1", { output: "no", isError: true, denied: true });
    const resumed = call("n1", "add", { resumes: "ask_1" });
    const byUser = mapped([resumed, answered("ask_1", false), refused], ok, before).chunks;
    expect(byUser.slice(1, -2)).toEqual(denied("ask_1", "no"));
    const byPolicy = mapped([resumed, answered("ask_1", true), refused], ok, before).chunks;
    expect(byPolicy.slice(1, -2)).toEqual([granted("ask_1"), ...denied("ask_1", "no")]);
    const executedBefore = mapped([resumed, returned("n1")], ok, before).chunks;
    expect(executedBefore.slice(1, -2)).toEqual([granted("ask_1"), output("ask_1", "2")]);
  });

  it("gets a new part for a call that resumes another message's question", () => {
    const { chunks } = mapped(continuation.slice(0, 3), ok, emptyMessage);
    expect(chunks.slice(1, -2)).toEqual([dynamic("n1"), output("n1", "3")]);
  });
});
