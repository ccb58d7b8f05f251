import {
  AmbitError,
  type InteractionAnswer,
  type InteractionKind,
  type Run,
  type RunRequest,
} from "@ambit/client";
import { Conversation, eventStream, safeText } from "@ambit/client/conversation";
import { type Door, type DoorCall, NotFound, RequestInvalid } from "@ambit/core/plugin";
import type { AgUiEvent } from "./events.js";
import { type AgUiInput, type Resumed, readInput } from "./input.js";
import { beginTurn, mapRecord, type TurnBeginning } from "./turn.js";

/** Serves threads of AG-UI. @param template the request of every thread of a platform */
export function agUiDoor(template: RunRequest): Door {
  return {
    name: "ag-ui",
    routes: [
      {
        method: "POST",
        path: "/ag-ui/run",
        summary: "Runs an AG-UI agent: a message of a thread, or the answers to its interrupts",
        handle: async (call) => await run(call, template),
      },
      {
        method: "GET",
        path: "/ag-ui/threads/{threadId}/stream",
        summary: "Follows the run that an AG-UI thread has now, from its start",
        handle: async (call) => await reconnect(call),
      },
      {
        method: "POST",
        path: "/ag-ui/threads/{threadId}/stop",
        summary: "Stops the run that an AG-UI thread has now",
        handle: async (call) => {
          return Response.json({ stopped: await Conversation.of(call, call.path("threadId")).stop() });
        },
      },
    ],
  };
}

async function run(call: DoorCall, template: RunRequest): Promise<Response> {
  const input = readInput(await call.json());
  const request = requestOf(call, input, template);
  const conversation = Conversation.of(call, input.threadId);
  const answers = await answersOf(conversation, input);
  const answered = await conversation.answer(answers);
  if (input.said === undefined && (answered === undefined || answered.accepted.length === 0))
    throw new NotFound(noQuestion);
  const messages = input.said && [{ role: "user" as const, content: [...input.said] }];
  const started = conversation.begin({ ...request, ...(messages && { messages }) }, input.runId);
  const { threadId, runId, state, toolResults } = input;
  return await streamed(conversation, started, {
    threadId,
    runId,
    state,
    answeredCalls: new Set(toolResults.keys()),
  });
}

const noQuestion =
  "No question is open in this thread that the input answers, and its last message isn't the user's: send a message.";

/** @throws RequestInvalid */
function requestOf({ caller }: DoorCall, { request, tools }: AgUiInput, template: RunRequest): RunRequest {
  if (caller === "page") {
    if (request === undefined) return {};
    const message = "may only be sent by a platform: the token of a page has its request";
    throw new RequestInvalid([{ path: "forwardedProps.ambit", message }]);
  }
  // `abortRun()` of AG-UI only disconnects: the message that comes next would meet the run that it left.
  const merged: RunRequest = { whenBusy: "interrupt", ...template, ...request };
  if (tools.length === 0) return merged;
  return { ...merged, customTools: [...(merged.customTools ?? []), ...tools] };
}

/** The answers to questions that are open: `resume` must have all of them. @throws RequestInvalid */
async function answersOf(
  conversation: Conversation,
  { resumed, toolResults }: AgUiInput,
): Promise<ReadonlyMap<string, InteractionAnswer>> {
  const answers = new Map(toolResults);
  if (resumed.length === 0) return answers;
  const open = await conversation.openQuestions();
  const missing = [...open].filter(
    ([id, kind]) => kind !== "client_tool" && !resumed.some(({ interruptId }) => interruptId === id),
  );
  const over = resumed.filter(({ interruptId, isCancelled }) => !isCancelled && !open.has(interruptId));
  const issues = [
    ...missing.map(([id]) => ({
      path: "resume",
      message: `must answer every open interrupt: '${id}' is missing`,
    })),
    ...over.map(({ interruptId }) => ({
      path: "resume",
      message: `answers '${interruptId}', which isn't open: it was answered, has expired, or was never asked`,
    })),
  ];
  if (issues.length > 0) throw new RequestInvalid(issues);
  for (const answer of resumed) {
    const kind = open.get(answer.interruptId);
    if (kind !== undefined) answers.set(answer.interruptId, answerTo(kind, answer));
  }
  return answers;
}

function answerTo(kind: InteractionKind, answer: Resumed): InteractionAnswer {
  const { isCancelled, payload } = answer;
  if (kind === "user_approval") return { approved: !isCancelled && isApproval(payload) };
  return isCancelled ? { output: "cancelled", isError: true } : { output: payload ?? null, isError: false };
}

/** Anything else than a clear yes is a no. */
function isApproval(payload: unknown): boolean {
  if (typeof payload !== "object" || payload === null) return payload === true;
  return "approved" in payload && payload.approved === true;
}

async function reconnect(call: DoorCall): Promise<Response> {
  const threadId = call.path("threadId");
  const conversation = Conversation.of(call, threadId);
  const live = await conversation.live();
  const newest = live?.at(-1);
  if (newest === undefined) return new Response(null, { status: 204 });
  return await streamed(conversation, newest, { threadId, runId: newest.id });
}

const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

async function streamed(
  conversation: Conversation,
  started: Run,
  beginning: TurnBeginning,
): Promise<Response> {
  return new Response(eventStream(eventsOf(conversation, started, beginning)), { headers });
}

/** A run that is refused before it begins is one that fails: AG-UI has no other form for a refusal that has a code. */
async function* eventsOf(
  conversation: Conversation,
  started: Run,
  beginning: TurnBeginning,
): AsyncGenerator<readonly AgUiEvent[], void, void> {
  let [turn, events] = beginTurn(beginning);
  yield events;
  try {
    for await (const record of conversation.records(started)) {
      [turn, events] = mapRecord(turn, record);
      yield events;
    }
  } catch (error) {
    if (!(error instanceof AmbitError) || error.status === undefined || error.result === undefined)
      throw error;
    yield [{ type: "RUN_ERROR", message: safeText(error.result), code: error.code }];
  }
}
