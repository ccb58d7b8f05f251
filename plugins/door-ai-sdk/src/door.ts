import { AmbitError, type Run, type RunRequest } from "@ambit/client";
import { Conversation, continuedRunId, eventStream, messageIdOf, safeText } from "@ambit/client/conversation";
import { type Door, type DoorCall, NotFound, RequestInvalid } from "@ambit/core/plugin";
import { type BrowserAnswer, type ChatBody, readBody } from "./body.js";
import { type Chunk, streamHeaders } from "./chunks.js";
import {
  askedMessage,
  beginMessage,
  beginTurn,
  emptyMessage,
  type MessageState,
  mapRecord,
} from "./message.js";

/** Serves chats of the AI SDK. @param template the request of every chat of a platform */
export function aiSdkDoor(template: RunRequest): Door {
  return {
    name: "ai-sdk",
    routes: [
      {
        method: "POST",
        path: "/ai-sdk/chat",
        summary: "Sends a message of an AI SDK chat, or its user's answers",
        handle: (call) => answered(async () => await send(call, template)),
      },
      {
        method: "GET",
        path: "/ai-sdk/chat/{chatId}/stream",
        summary: "Follows the message that an AI SDK chat is getting, from its start",
        handle: (call) => answered(async () => await reconnect(call)),
      },
      {
        method: "POST",
        path: "/ai-sdk/chat/{chatId}/stop",
        summary: "Stops the message that an AI SDK chat is getting",
        handle: async (call) =>
          Response.json({ stopped: await Conversation.of(call, call.path("chatId")).stop() }),
      },
    ],
  };
}

async function send(call: DoorCall, template: RunRequest): Promise<Response> {
  const body = readBody(await call.json());
  const request = requestOf(call, body, template);
  const conversation = Conversation.of(call, body.chatId);
  const { messageId, answers, parts } = body.answered;
  const accepted = await conversation.answer(byQuestion(answers));
  if (body.said !== undefined) {
    const run = conversation.begin({ ...request, messages: [{ role: "user", content: [...body.said] }] });
    return await streamed(conversation, messageIdOf(run.id), [run], emptyMessage);
  }
  if (accepted === undefined || accepted.accepted.length === 0) throw new NotFound(noQuestion);
  const run = conversation.begin(request, continuedRunId(accepted.runId));
  return await streamed(conversation, messageId, [run], askedMessage(parts));
}

const noQuestion =
  "No question is open here that these answers belong to: each was answered already, has expired, or was never asked.";

/** The latest answer to each question. */
const byQuestion = (answers: readonly BrowserAnswer[]) =>
  new Map(answers.map(({ questionId, answer }) => [questionId, answer]));

/** @throws RequestInvalid */
function requestOf({ caller }: DoorCall, { request }: ChatBody, template: RunRequest): RunRequest {
  // `stop()` of the AI SDK only disconnects: the message that comes next would meet the run that it left.
  if (caller === "platform") return { whenBusy: "interrupt", ...template, ...request };
  if (request === undefined) return {};
  throw new RequestInvalid([
    { path: "ambit", message: "may only be sent by a platform: the token of a page has its request" },
  ]);
}

async function reconnect(call: DoorCall): Promise<Response> {
  const conversation = Conversation.of(call, call.path("chatId"));
  const runs = await conversation.live();
  const [first] = runs ?? [];
  if (runs === undefined || first === undefined) return new Response(null, { status: 204 });
  return await streamed(conversation, messageIdOf(first.id), runs, emptyMessage);
}

/** The chunks of one message, as the response. A refusal of its first run comes before any of them, as an error. */
async function streamed(
  conversation: Conversation,
  messageId: string,
  runs: readonly Run[],
  state: MessageState,
): Promise<Response> {
  const chunks = chunksOf(conversation, messageId, runs, state);
  const first = await chunks.next();
  const all = (async function* () {
    if (first.done !== true) yield first.value;
    yield* chunks;
  })();
  return new Response(eventStream(all), { headers: streamHeaders });
}

async function* chunksOf(
  conversation: Conversation,
  messageId: string,
  runs: readonly Run[],
  before: MessageState,
): AsyncGenerator<readonly Chunk[], void, void> {
  let state = before;
  let isBegun = false;
  for (const run of runs) {
    let [turn, chunks] = beginTurn(state);
    for await (const record of conversation.records(run)) {
      const [next, added] = mapRecord(turn, record);
      const begin = isBegun ? [] : [beginMessage(messageId, run.id)];
      isBegun = true;
      // Only the last run finishes the message.
      yield [...begin, ...chunks, ...(run === runs.at(-1) ? added : added.filter(isOfPart))];
      [turn, chunks] = [next, []];
    }
    state = turn;
  }
}

const ends: ReadonlySet<Chunk["type"]> = new Set(["finish", "abort", "error"]);
const isOfPart = ({ type }: Chunk) => !ends.has(type);

/** An AI SDK client shows the whole body of a refusal to its user. */
async function answered(handle: () => Promise<Response>): Promise<Response> {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof NotFound) return text(409, error.message);
    if (error instanceof RequestInvalid) return text(400, error.message);
    if (!(error instanceof AmbitError) || error.status === undefined || error.result === undefined)
      throw error;
    const { status, retryAfterMs } = error;
    return text(status, safeText(error.result), retryAfterMs);
  }
}

function text(status: number, sentence: string, retryAfterMs?: number): Response {
  const headers = new Headers({ "content-type": "text/plain; charset=utf-8" });
  if (retryAfterMs !== undefined) headers.set("retry-after", String(Math.ceil(retryAfterMs / 1_000)));
  return new Response(sentence, { status, headers });
}
