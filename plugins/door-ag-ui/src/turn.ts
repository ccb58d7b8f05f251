import type { AgentEvent, StreamRecord } from "@ambit/client";
import { safeText } from "@ambit/client/conversation";
import { z } from "zod";
import type { AgUiEvent, Interrupt, Json, Usage } from "./events.js";

type Result = Extract<StreamRecord, { kind: "result" }>["result"];
type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;

/** What the events of a run so far have made, as far as the next ones depend on it. */
export interface TurnState {
  readonly threadId: string;
  readonly runId: string;
  /** Texts and thoughts that haven't ended, by the id of their message. */
  readonly open: ReadonlyMap<string, "text" | "reasoning">;
  /** Whole texts and thoughts, which have no ids of their own. */
  readonly wholeTexts: number;
  /** The calls that earlier runs of the thread announced, by the id that the log has for them now. */
  readonly resumed: ReadonlyMap<string, string>;
  /** Calls of the application's own tools whose results this request brought: the application has them already. */
  readonly answeredCalls: ReadonlySet<string>;
  readonly questions: ReadonlyMap<string, EventOf<"interaction_request">>;
  /** What the application's state is, as the client has it. Undefined: no object. */
  readonly state: Json | undefined;
  readonly usage: EventOf<"usage"> | undefined;
}

type Step = readonly [TurnState, readonly AgUiEvent[]];

export interface TurnBeginning extends Pick<TurnState, "threadId" | "runId"> {
  readonly answeredCalls?: ReadonlySet<string>;
  readonly state?: Json | undefined;
}

/** A run begins: its first event, which comes before every other. Pure. */
export function beginTurn({ threadId, runId, answeredCalls = new Set(), state }: TurnBeginning): Step {
  return [
    {
      threadId,
      runId,
      open: new Map(),
      wholeTexts: 0,
      resumed: new Map(),
      answeredCalls,
      questions: new Map(),
      state,
      usage: undefined,
    },
    [{ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" }],
  ];
}

/** What a record of the run's log adds. Events that this door doesn't know add nothing. Pure. */
export function mapRecord(turn: TurnState, record: StreamRecord): Step {
  return record.kind === "result" ? endTurn(turn, record.result) : mapEvent(turn, record.event);
}

function mapEvent(turn: TurnState, event: AgentEvent): Step {
  switch (event.type) {
    case "message":
      return whole(turn, "text", event.text);
    case "thought":
      return whole(turn, "reasoning", event.text);
    case "message_start":
      return begin(turn, "text", event.id);
    case "message_delta":
      return add(turn, "text", event);
    case "message_end":
      return end(turn, "text", event.id);
    case "thought_start":
      return begin(turn, "reasoning", event.id);
    case "thought_delta":
      return add(turn, "reasoning", event);
    case "thought_end":
      return end(turn, "reasoning", event.id);
    case "tool_call":
      return toolCall(turn, event);
    case "tool_result":
      return toolResult(turn, event);
    case "interaction_request":
      return [{ ...turn, questions: new Map(turn.questions).set(event.id, event) }, []];
    case "interaction_response":
    case "interaction_expired":
      return [{ ...turn, questions: without(turn.questions, event.id) }, []];
    case "usage":
      return [{ ...turn, usage: event }, []];
    case "data":
      return event.name === "plan"
        ? plan(turn, event.data)
        : [turn, [custom(`data.${event.name}`, event.data)]];
    case "tool_output":
    case "file":
    case "mcp_server_failed":
    case "boundary_decision":
    case "commands":
    case "mode":
    case "configuration": {
      const { type, ...value } = event;
      return [turn, [custom(type, value)]];
    }
    default:
      // `turn` and `done` say nothing that the result doesn't, and an `error` is in it.
      return [turn, []];
  }
}

const custom = (name: string, value: unknown): AgUiEvent => ({ type: "CUSTOM", name, value });

/** Ids of the log begin anew with each run, and those of a thread's messages must differ. */
const messageIdOf = ({ runId }: TurnState, id: string) => `${runId}.${id}`;

function whole(turn: TurnState, kind: "text" | "reasoning", text: string): Step {
  if (text === "") return [turn, []];
  const messageId = messageIdOf(turn, `whole-${turn.wholeTexts + 1}`);
  return [
    { ...turn, wholeTexts: turn.wholeTexts + 1 },
    [...beginning(kind, messageId), addition(kind, messageId, text), ...ending(kind, messageId)],
  ];
}

function begin(turn: TurnState, kind: "text" | "reasoning", id: string): Step {
  const messageId = messageIdOf(turn, id);
  return [{ ...turn, open: new Map(turn.open).set(messageId, kind) }, beginning(kind, messageId)];
}

function add(
  turn: TurnState,
  kind: "text" | "reasoning",
  { id, delta }: { id: string; delta: string },
): Step {
  return [turn, delta === "" ? [] : [addition(kind, messageIdOf(turn, id), delta)]];
}

function end(turn: TurnState, kind: "text" | "reasoning", id: string): Step {
  const messageId = messageIdOf(turn, id);
  return [{ ...turn, open: without(turn.open, messageId) }, ending(kind, messageId)];
}

function beginning(kind: "text" | "reasoning", messageId: string): AgUiEvent[] {
  if (kind === "text") return [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }];
  return [
    { type: "REASONING_START", messageId },
    { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" },
  ];
}

function addition(kind: "text" | "reasoning", messageId: string, delta: string): AgUiEvent {
  const type = kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT";
  return { type, messageId, delta };
}

function ending(kind: "text" | "reasoning", messageId: string): AgUiEvent[] {
  if (kind === "text") return [{ type: "TEXT_MESSAGE_END", messageId }];
  return [
    { type: "REASONING_MESSAGE_END", messageId },
    { type: "REASONING_END", messageId },
  ];
}

function toolCall(turn: TurnState, event: EventOf<"tool_call">): Step {
  const { id, name = "tool", input = {}, render, resumes } = event;
  // The thread has this call already, under the id of its question.
  if (resumes !== undefined) return [{ ...turn, resumed: new Map(turn.resumed).set(id, resumes) }, []];
  return [
    turn,
    [
      {
        type: "TOOL_CALL_START",
        toolCallId: id,
        toolCallName: name,
        ...(render === undefined ? {} : { metadata: { render } }),
      },
      { type: "TOOL_CALL_ARGS", toolCallId: id, delta: JSON.stringify(input) },
      { type: "TOOL_CALL_END", toolCallId: id },
    ],
  ];
}

function toolResult(turn: TurnState, event: EventOf<"tool_result">): Step {
  const { type: _type, id, output = "", data, ...about } = event;
  const toolCallId = turn.resumed.get(id) ?? id;
  // A second result of a call would be a second message of the thread.
  if (turn.answeredCalls.has(toolCallId)) return [turn, []];
  const content = data ?? output;
  const metadata = Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined));
  return [
    turn,
    [
      {
        type: "TOOL_CALL_RESULT",
        messageId: messageIdOf(turn, `${toolCallId}.result`),
        toolCallId,
        role: "tool",
        content: typeof content === "string" ? content : JSON.stringify(content),
        ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      },
    ],
  ];
}

/** The agent's plan is a part of the application's state. */
function plan(turn: TurnState, value: unknown): Step {
  const state = { ...turn.state, plan: value };
  const event: AgUiEvent =
    turn.state === undefined
      ? { type: "STATE_SNAPSHOT", snapshot: state }
      : { type: "STATE_DELTA", delta: [{ op: "add", path: "/plan", value }] };
  return [{ ...turn, state }, [event]];
}

function endTurn(turn: TurnState, result: Result): Step {
  const events = [...turn.open].flatMap(([messageId, kind]) => ending(kind, messageId));
  const ended: TurnState = { ...turn, open: new Map() };
  const usage = usageOf(turn.usage, result.model);
  const isCancelled = result.stopReason === "cancelled" || result.failure?.code === "run_cancelled";
  if (!result.ok && !isCancelled) {
    const code = result.failure?.code ?? "internal";
    return [ended, [...events, { type: "RUN_ERROR", message: safeText(result), code, ...usage }]];
  }
  const { threadId, runId } = turn;
  const { output, stopReason, receipt } = result;
  const about = { output, stopReason, receipt };
  const outcome = isCancelled ? ({ type: "cancelled" } as const) : outcomeOf(turn, stopReason);
  return [ended, [...events, { type: "RUN_FINISHED", threadId, runId, outcome, result: about, ...usage }]];
}

/** A question that the run ended without is open still: the next run of the thread answers it. */
function outcomeOf({ questions }: TurnState, stopReason: string | undefined) {
  if (stopReason !== "paused") return { type: "success" } as const;
  const openQuestions = [...questions.values()];
  const interrupts = openQuestions.filter(({ kind }) => kind !== "client_tool").map(interruptOf);
  if (interrupts.length > 0) return { type: "interrupt", interrupts } as const;
  return { type: "success", pendingToolCallIds: openQuestions.map(({ id }) => id) } as const;
}

const approvalSchema: Json = {
  type: "object",
  properties: { approved: { type: "boolean" } },
  required: ["approved"],
};

const inputQuestion = z.looseObject({
  message: z.string().optional(),
  form: z.record(z.string(), z.unknown()).optional(),
  url: z.string().optional(),
});

function interruptOf({ id, kind, payload = {} }: EventOf<"interaction_request">): Interrupt {
  const { toolName = "a tool", input, toolCallId: _id, expiresAt: _at, ...about } = payload;
  if (kind === "user_approval")
    return {
      id,
      reason: "tool_call",
      message: `May ${toolName} be called?`,
      toolCallId: id,
      responseSchema: approvalSchema,
      metadata: { ...about, toolName, input },
    };
  const { message = "The agent needs an input.", form, url } = inputQuestion.catch({}).parse(input);
  return {
    id,
    reason: "input_required",
    message,
    responseSchema: form ?? { type: "object" },
    ...(url === undefined ? {} : { metadata: { url } }),
  };
}

function usageOf(
  usage: EventOf<"usage"> | undefined,
  model: string | undefined,
): { usage?: readonly Usage[] } {
  if (usage === undefined) return {};
  const { input, cached, output, reasoning, total } = usage;
  const counts: Usage = {
    ...(model !== undefined && { model }),
    ...(input !== undefined && { inputTokens: input }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
    ...(output !== undefined && { outputTokens: output }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(total !== undefined && { totalTokens: total }),
  };
  return { usage: [counts] };
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const others = new Map(map);
  others.delete(key);
  return others;
}
