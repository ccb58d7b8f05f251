import type { ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type Answer, DEFAULT_USAGE, type MessageAnswer, say } from "./answer.js";
import { type ModelApi, type Reply, untilEnd } from "./api/model-api.js";
import { type ResolvedCall, resolveCall } from "./tools.js";
import { type ModelTurn, qualifiedName } from "./turn.js";

/** Sends a response. Rejects only with an AbortError, when `signal` aborts during a pause. */
export async function respond(
  answer: Answer,
  {
    api,
    turn,
    body,
    response,
    signal,
  }: {
    api: ModelApi;
    turn: ModelTurn;
    body: unknown;
    response: ServerResponse;
    /** Fires when the client has left or the server closes. */
    signal: AbortSignal;
  },
): Promise<void> {
  switch (answer.kind) {
    case "http":
      sendJson(
        response,
        answer.status,
        api.error(answer.status, answer.message ?? `scripted ${answer.status}`),
      );
      return;
    case "hang":
      await new Promise((resolve) => {
        if (signal.aborted) resolve(undefined);
        signal.addEventListener("abort", resolve, { once: true });
      });
      return;
    case "drop":
      if (turn.streamed)
        writeHalfStream(response, api, replyTo(turn, say("This answer is cut in the middle.")), body);
      await flushed(response);
      response.destroy();
      return;
    case "message": {
      const reply = replyTo(turn, answer);
      if (!turn.streamed) sendJson(response, 200, api.completion(reply));
      else await stream(response, api, reply, body, signal);
    }
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** A call of a tool that isn't offered becomes a text that says so, for a clear failure of the test. */
function replyTo(turn: ModelTurn, answer: MessageAnswer): Reply {
  const calls: ResolvedCall[] = [];
  for (const call of answer.calls ?? []) {
    const resolved = resolveCall(call, turn.tools);
    if (resolved === undefined)
      return replyTo(turn, say(noTool("shell" in call ? "for the shell" : call.tool, turn)));
    calls.push(resolved);
  }
  return {
    model: turn.model,
    thought: answer.thought ?? "",
    chunks: answer.chunks ?? [],
    pauseMs: answer.pauseMs ?? 0,
    calls,
    usage: answer.usage ?? DEFAULT_USAGE,
    end: answer.end ?? "finished",
  };
}

function noTool(wanted: string, turn: ModelTurn): string {
  const offered = turn.tools.map(qualifiedName).join(", ") || "none";
  return `NO TOOL ${wanted}; offered: ${offered}`;
}

async function stream(
  response: ServerResponse,
  api: ModelApi,
  reply: Reply,
  body: unknown,
  signal: AbortSignal,
): Promise<void> {
  writeStreamHead(response);
  for (const frame of untilEnd(api.frames(reply, body), reply.end)) {
    if (signal.aborted) return;
    response.write(encode(frame));
    if (frame.pauseMs) await pause(frame.pauseMs, undefined, { signal });
  }
  response.end();
}

function writeHalfStream(response: ServerResponse, api: ModelApi, reply: Reply, body: unknown): void {
  const frames = [...api.frames(reply, body)];
  writeStreamHead(response);
  for (const frame of frames.slice(0, Math.ceil(frames.length / 2))) response.write(encode(frame));
}

function writeStreamHead(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
}

function encode({ event, data }: { event?: string; data: string }): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}

/** Sends the first half of `drop` before the connection is cut. */
async function flushed(response: ServerResponse): Promise<void> {
  if (!response.headersSent) return;
  await new Promise((resolve) => response.write(": cut\n\n", resolve));
}
