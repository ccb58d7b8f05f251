import type { AgentEvent, StreamRecord } from "@ambit/client";
import { safeText } from "@ambit/client/conversation";
import type { Chunk, FinishReason, Json, Metadata } from "./chunks.js";

type Result = Extract<StreamRecord, { kind: "result" }>["result"];
type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;

/** A call whose end the message doesn't have yet. */
interface OpenCall {
  readonly approval?: "requested" | "granted";
  /** The question that it waits for, if its user is asked. */
  readonly questionId?: string;
  /** The end of what its command has printed. */
  readonly printed: string;
}

/** A text or thought that hasn't ended. */
interface OpenBlock {
  readonly kind: "text" | "reasoning";
  readonly id: string;
}

/** The state of the message after the chunks so far, as far as the next ones depend on it. */
export interface MessageState {
  /** How many runs have written to the message. Ids of texts begin anew with each run. */
  readonly turn: number;
  /** The open calls by the ids of their parts. */
  readonly calls: ReadonlyMap<string, OpenCall>;
  /** The ids of parts by the log's other ids of the same call: that of its question, or of the call that resumes it. */
  readonly aliases: ReadonlyMap<string, string>;
  /** The calls whose question follows, which says who executes them, by their ids. */
  readonly held: ReadonlyMap<string, EventOf<"tool_call">>;
  readonly blocks: readonly OpenBlock[];
  readonly usage: EventOf<"usage"> | undefined;
}

/** A message without parts. */
export const emptyMessage: MessageState = {
  turn: 0,
  calls: new Map(),
  aliases: new Map(),
  held: new Map(),
  blocks: [],
  usage: undefined,
};

/** A part of a tool that a client has in the message that is continued. */
export interface AskedPart {
  readonly toolCallId: string;
  /** The id of an approval's question. */
  readonly approvalId?: string;
}

/** The message that a client has, whose questions the next run continues. Pure. */
export function askedMessage(parts: readonly AskedPart[]): MessageState {
  const calls = parts.map(({ toolCallId, approvalId }): [string, OpenCall] => [
    toolCallId,
    approvalId === undefined
      ? { questionId: toolCallId, printed: "" }
      : { questionId: approvalId, approval: "requested", printed: "" },
  ]);
  const aliases = parts.map(({ toolCallId, approvalId = toolCallId }): [string, string] => [
    approvalId,
    toolCallId,
  ]);
  return { ...emptyMessage, turn: 1, calls: new Map(calls), aliases: new Map(aliases) };
}

type Step = readonly [MessageState, readonly Chunk[]];

/** The first chunk of a response. */
export function beginMessage(messageId: string, runId: string): Chunk {
  return { type: "start", messageId, messageMetadata: { runId } };
}

/** A run begins to write to the message. Its step is a new one: what ended in earlier ones isn't sent back again. Pure. */
export function beginTurn(state: MessageState): Step {
  return [
    { ...state, turn: state.turn + 1, held: new Map(), blocks: [], usage: undefined },
    [{ type: "start-step" }],
  ];
}

/** What a record of the run's log adds to the message. Events that this door doesn't know add nothing. Pure. */
export function mapRecord(state: MessageState, record: StreamRecord): Step {
  return record.kind === "result" ? endTurn(state, record.result) : mapEvent(state, record.event);
}

function mapEvent(state: MessageState, event: AgentEvent): Step {
  switch (event.type) {
    case "message":
      return wholeBlock(state, "text", event.text, event.parentToolCallId);
    case "thought":
      return wholeBlock(state, "reasoning", event.text, event.parentToolCallId);
    case "message_start":
      return blockStart(state, "text", event);
    case "message_delta":
    case "thought_delta":
      return blockDelta(state, event);
    case "message_end":
    case "thought_end":
      return blockEnd(state, event.id);
    case "thought_start":
      return blockStart(state, "reasoning", event);
    case "tool_call":
      return toolCall(state, event);
    case "tool_output":
      return toolOutput(state, event);
    case "tool_result":
      return toolResult(state, event);
    case "interaction_request":
      return question(state, event);
    case "interaction_response":
      return response(state, event);
    case "interaction_expired":
      return expired(state, event);
    case "file":
      return [state, [fileOf(event)]];
    case "usage":
      return [{ ...state, usage: event }, []];
    case "data":
      return [state, [dataOf(event)]];
    case "mcp_server_failed": {
      const { type: _type, ...data } = event;
      return [state, [{ type: "data-mcp_server_failed", id: event.serverName, data }]];
    }
    case "boundary_decision":
    case "commands":
    case "mode":
    case "configuration": {
      const { type, ...data } = event;
      return [state, [{ type: `data-${type}`, data, transient: true }]];
    }
    default:
      // `turn` and `done` say nothing that the result doesn't, and an `error` is in it.
      return [state, []];
  }
}

const blockId = ({ turn }: MessageState, id: string) => `${turn}-${id}`;

type Kind = OpenBlock["kind"];

/** What a subagent says is no part of the answer: it is shown as the thoughts of the call that began it. */
function startOf(
  kind: Kind,
  id: string,
  parentToolCallId: string | undefined,
): Chunk & { readonly type: `${Kind}-start` } {
  if (parentToolCallId === undefined) return { type: `${kind}-start`, id };
  return { type: "reasoning-start", id, providerMetadata: { ambit: { parentToolCallId } } };
}

function wholeBlock(state: MessageState, kind: Kind, text: string, parent: string | undefined): Step {
  const [begun, chunks] = blockStart(state, kind, { id: "whole", parentToolCallId: parent });
  const [ended, end] = blockEnd(begun, "whole");
  return [ended, [...chunks, ...blockDelta(begun, { id: "whole", delta: text })[1], ...end]];
}

function blockStart(
  state: MessageState,
  ofEvent: Kind,
  event: { readonly id: string; readonly parentToolCallId?: string | undefined },
): Step {
  const id = blockId(state, event.id);
  const start = startOf(ofEvent, id, event.parentToolCallId);
  const kind = start.type === "text-start" ? "text" : "reasoning";
  return [{ ...state, blocks: [...state.blocks, { kind, id }] }, [start]];
}

function blockDelta(state: MessageState, event: { readonly id: string; readonly delta: string }): Step {
  const block = openBlock(state, event.id);
  return [
    state,
    block === undefined ? [] : [{ type: `${block.kind}-delta`, id: block.id, delta: event.delta }],
  ];
}

function blockEnd(state: MessageState, eventId: string): Step {
  const block = openBlock(state, eventId);
  if (block === undefined) return [state, []];
  const blocks = state.blocks.filter((other) => other !== block);
  return [{ ...state, blocks }, [{ type: `${block.kind}-end`, id: block.id }]];
}

function openBlock(state: MessageState, eventId: string): OpenBlock | undefined {
  const id = blockId(state, eventId);
  return state.blocks.find((block) => block.id === id);
}

/** The beginning of every id that Ambit gives to a question, and to the call that it is about. */
export const questionPrefix = "ask_";

function toolCall(state: MessageState, event: EventOf<"tool_call">): Step {
  const resumed = event.resumes === undefined ? undefined : state.aliases.get(event.resumes);
  if (resumed !== undefined)
    return [{ ...state, aliases: new Map(state.aliases).set(event.id, resumed) }, []];
  if (event.id.startsWith(questionPrefix))
    return [{ ...state, held: new Map(state.held).set(event.id, event) }, []];
  return [withCall(state, event.id, { printed: "" }), [executedHere(event)]];
}

/** A call that Ambit, or the agent itself, executes. */
function executedHere(
  { id, name = "tool", input = {}, render, parentToolCallId }: EventOf<"tool_call">,
  more: Json = {},
): Chunk {
  const metadata = { ...(render && { render }), ...(parentToolCallId && { parentToolCallId }), ...more };
  return {
    type: "tool-input-available",
    toolCallId: id,
    toolName: name,
    input,
    providerExecuted: true,
    dynamic: true,
    ...(Object.keys(metadata).length === 0 ? {} : { toolMetadata: metadata }),
  };
}

function withCall(state: MessageState, partId: string, call: OpenCall): MessageState {
  const calls = new Map(state.calls).set(partId, call);
  const aliases = new Map(state.aliases).set(partId, partId);
  if (call.questionId !== undefined) aliases.set(call.questionId, partId);
  return { ...state, calls, aliases };
}

function withoutCall(state: MessageState, partId: string): MessageState {
  const calls = new Map(state.calls);
  calls.delete(partId);
  return { ...state, calls, aliases: new Map([...state.aliases].filter(([, id]) => id !== partId)) };
}

/** A call whose question didn't follow. */
function released(state: MessageState, id: string): Step {
  const call = state.held.get(id);
  if (call === undefined) return [state, []];
  const held = new Map(state.held);
  held.delete(id);
  return [withCall({ ...state, held }, id, { printed: "" }), [executedHere(call)]];
}

/** Characters of what a command prints that a client is shown while it runs: each piece sends them again. */
const maxPrinted = 8_192;

function toolOutput(before: MessageState, event: EventOf<"tool_output">): Step {
  const [state, chunks] = released(before, event.id);
  const partId = state.aliases.get(event.id);
  const call = partId === undefined ? undefined : state.calls.get(partId);
  if (partId === undefined || call === undefined) return [state, chunks];
  const printed = `${call.printed}${event.delta}`.slice(-maxPrinted);
  const output: Chunk = {
    type: "tool-output-available",
    toolCallId: partId,
    output: printed,
    preliminary: true,
  };
  return [withCall(state, partId, { ...call, printed }), [...chunks, output]];
}

function toolResult(before: MessageState, event: EventOf<"tool_result">): Step {
  const [state, chunks] = released(before, event.id);
  const partId = state.aliases.get(event.id);
  const call = partId === undefined ? undefined : state.calls.get(partId);
  if (partId === undefined || call === undefined) return [state, chunks];
  // The user is asked about it first, under the other id.
  if (event.movedTo !== undefined)
    return [withCall(state, partId, { ...call, questionId: event.movedTo }), chunks];
  return [withoutCall(state, partId), [...chunks, ...outcome(partId, call, event)]];
}

/** The end of a call's part. */
function outcome(partId: string, call: OpenCall, event: EventOf<"tool_result">): readonly Chunk[] {
  const { output: reported = "" } = event;
  const text = typeof reported === "string" ? reported : JSON.stringify(reported);
  const isUnanswered = call.approval === "requested";
  if (event.denied === true || (isUnanswered && event.settled === "interrupted"))
    return denied(partId, call, text);
  // A call that was executed was allowed, though an earlier run may have the answer on its log.
  const granted: Chunk[] =
    isUnanswered && call.questionId !== undefined
      ? [{ type: "tool-approval-response", approvalId: call.questionId, approved: true }]
      : [];
  if (event.isError === true)
    return [
      ...granted,
      {
        type: "tool-output-error",
        toolCallId: partId,
        errorText: unsettled[event.settled ?? ""] ?? (text === "" ? "The call failed." : text),
      },
    ];
  const { data, changes, locations } = event;
  const metadata = {
    ...(changes === undefined ? {} : { changes }),
    ...(locations === undefined ? {} : { locations }),
  };
  const isOfClient = call.questionId !== undefined && call.approval === undefined;
  return [
    ...granted,
    {
      type: "tool-output-available",
      toolCallId: partId,
      output: data ?? (isOfClient ? asTheClientSent(reported) : reported),
      ...(Object.keys(metadata).length === 0 ? {} : { toolMetadata: metadata }),
    },
  ];
}

/** The log has a client tool's output as the model reads it. */
function asTheClientSent(output: unknown): unknown {
  if (typeof output !== "string" || !/^[[{]/.test(output)) return output;
  try {
    return JSON.parse(output);
  } catch {
    return output;
  }
}

/** Why a call has no outcome, for the user. What the log has is for the model. */
const unsettled: Readonly<Record<string, string>> = {
  deferred: "This call didn't run: the turn paused for its user first.",
  interrupted: "The turn was stopped before this call had a result. It may have run.",
  unknown: "This call was allowed and may have run. Its outcome isn't known.",
};

/** A part may only be denied after a question. Where no user was asked, the answer is the policy's. */
function denied(partId: string, { questionId = partId, approval }: OpenCall, reason: string): Chunk[] {
  const automaticQuestion: Chunk[] =
    approval === undefined
      ? [{ type: "tool-approval-request", approvalId: questionId, toolCallId: partId, isAutomatic: true }]
      : [];
  return [
    ...automaticQuestion,
    { type: "tool-approval-response", approvalId: questionId, approved: false, reason },
    { type: "tool-output-denied", toolCallId: partId },
  ];
}

function question(before: MessageState, event: EventOf<"interaction_request">): Step {
  const { id, kind, payload = {} } = event;
  const { toolName = "tool", input, render, changes, locations, server, expiresAt } = payload;
  const call = before.held.get(id) ?? {
    type: "tool_call" as const,
    id,
    name: toolName,
    input,
    ...(render && { render }),
  };
  const held = new Map(before.held);
  held.delete(id);
  const state = { ...before, held };
  /** The part of the same call, where the agent reported it before its question. */
  const reported = state.aliases.get(id);
  if (kind !== "user_approval") {
    const [remaining, chunks] = reported === undefined ? [state, []] : replacedByQuestion(state, reported);
    return [
      withCall(remaining, id, { questionId: id, printed: "" }),
      [...chunks, executedByClient(call, expiresAt)],
    ];
  }
  const partId = reported ?? id;
  const about = {
    ...(changes && { changes }),
    ...(locations && { locations }),
    ...(server && { server }),
    ...(expiresAt && { expiresAt }),
  };
  const reason = payload.earlierOutcome === "unknown" ? { reason: earlierOutcomeUnknown } : {};
  return [
    withCall(state, partId, { questionId: id, approval: "requested", printed: "" }),
    [
      executedHere({ ...call, id: partId }, about),
      { type: "tool-approval-request", approvalId: id, toolCallId: partId, ...reason },
    ],
  ];
}

/** A call that waits for its output from the client: of a client tool, or a form for the user. */
function executedByClient(
  { id, name = "tool", input = {}, render }: EventOf<"tool_call">,
  expiresAt?: string,
): Chunk {
  const metadata = { ...(render && { render }), ...(expiresAt && { expiresAt }) };
  return {
    type: "tool-input-available",
    toolCallId: id,
    toolName: name,
    input,
    ...(Object.keys(metadata).length === 0 ? {} : { toolMetadata: metadata }),
  };
}

/** A part that is shown as Ambit's own call can't become the client's: it ends, and the client's is another one. */
function replacedByQuestion(state: MessageState, partId: string): Step {
  const output = "The user's client executes this call.";
  return [withoutCall(state, partId), [{ type: "tool-output-available", toolCallId: partId, output }]];
}

const earlierOutcomeUnknown =
  "This call was allowed before and may have run: its turn ended before the outcome was known.";

function response(state: MessageState, event: EventOf<"interaction_response">): Step {
  const partId = state.aliases.get(event.id);
  const call = partId === undefined ? undefined : state.calls.get(partId);
  const approved = event.payload?.approved;
  if (partId === undefined || call === undefined || event.kind !== "user_approval" || approved === undefined)
    return [state, []];
  // A denial goes with its reason, once the call has ended.
  if (!approved) return [state, []];
  return [
    withCall(state, partId, { ...call, approval: "granted" }),
    [{ type: "tool-approval-response", approvalId: event.id, approved: true }],
  ];
}

function expired(state: MessageState, event: EventOf<"interaction_expired">): Step {
  const partId = state.aliases.get(event.id);
  const call = partId === undefined ? undefined : state.calls.get(partId);
  if (partId === undefined || call === undefined) return [state, []];
  const reason = "The question is over without an answer.";
  const chunks: Chunk[] =
    event.kind === "user_approval"
      ? denied(partId, call, reason)
      : [{ type: "tool-output-error", toolCallId: partId, errorText: reason }];
  return [withoutCall(state, partId), chunks];
}

function fileOf({ url, mediaType, path, size, sha256 }: EventOf<"file">): Chunk {
  const about = { ...(path && { path }), ...(size !== undefined && { size }), ...(sha256 && { sha256 }) };
  return {
    type: "file",
    url,
    mediaType,
    ...(Object.keys(about).length === 0 ? {} : { providerMetadata: { ambit: about } }),
  };
}

/** Data whose latest value replaces the one before; each of any other name is a part of its own. */
const replaced: ReadonlySet<string> = new Set(["plan", "setup", "preview", "pull_request"]);

function dataOf({ name, data, transient }: EventOf<"data">): Chunk {
  if (transient === true) return { type: `data-${name}`, data, transient: true };
  if (!replaced.has(name)) return { type: `data-${name}`, data };
  const port = typeof data === "object" && data !== null && "port" in data ? `-${data.port}` : "";
  return { type: `data-${name}`, id: `${name}${port}`, data };
}

function endTurn(before: MessageState, result: Result): Step {
  const chunks: Chunk[] = before.blocks.map(({ kind, id }) => ({ type: `${kind}-end`, id }));
  let state: MessageState = { ...before, blocks: [] };
  for (const id of state.held.keys()) {
    const [next, added] = released(state, id);
    state = next;
    chunks.push(...added);
  }
  for (const [partId, { questionId }] of state.calls) {
    // A question that no one has answered stays one: the next turn may bring its answer.
    if (questionId !== undefined) continue;
    chunks.push({ type: "tool-output-error", toolCallId: partId, errorText: withoutResult });
    state = withoutCall(state, partId);
  }
  const { runId = "", receipt, model } = result;
  const usage = state.usage;
  if (usage !== undefined) {
    const { type: _type, ...data } = usage;
    chunks.push({ type: "data-usage", id: runId, data });
  }
  if (receipt !== undefined) chunks.push({ type: "data-receipt", id: runId, data: receipt });
  const isCancelled = result.stopReason === "cancelled" || result.failure?.code === "run_cancelled";
  if (!result.ok && !isCancelled) return [state, [...chunks, { type: "error", errorText: safeText(result) }]];
  if (isCancelled) chunks.push({ type: "abort", reason: "The run was stopped." });
  const messageMetadata: Metadata = {
    runId,
    ...(model && { model }),
    ...(usage && { usage: usageOf(usage) }),
  };
  chunks.push(
    { type: "finish-step" },
    {
      type: "finish",
      // It also keeps the client from sending by itself what this run was stopped in.
      finishReason: isCancelled ? "interrupted" : (finishReasons[result.stopReason ?? "end_turn"] ?? "other"),
      messageMetadata,
    },
  );
  return [state, chunks];
}

const withoutResult = "The run ended before this call had a result.";

const finishReasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  max_tokens: "length",
  refusal: "content-filter",
  paused: "tool-calls",
};

function usageOf(usage: EventOf<"usage">): NonNullable<Metadata["usage"]> {
  const { input, cached, output, reasoning, total } = usage;
  return {
    ...(input !== undefined && { inputTokens: input }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
    ...(output !== undefined && { outputTokens: output }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(total !== undefined && { totalTokens: total }),
  };
}
