import type { IncomingMessage, ServerResponse } from "node:http";
import { ZodError, z } from "zod";
import type { Answer } from "./answer.js";
import { credentialsOf, type RecordedRequest } from "./recording.js";
import { respond, sendJson } from "./respond.js";
import { APIS, routeOf } from "./routes.js";
import { type ModelTurn, qualifiedName } from "./turn.js";

/** What a response depends on, besides its request. */
export interface Handling {
  readonly decide: (turn: ModelTurn) => Promise<Answer>;
  readonly expectedKey: string | undefined;
  readonly models: readonly string[];
  /** Fires when the client has left or the server closes. */
  readonly signal: AbortSignal;
  /** Call it when the record has changed. */
  readonly changed: () => void;
}

/** The record of a request whose body hasn't been read yet. */
export function startRecord(request: IncomingMessage, response: ServerResponse): RecordedRequest {
  const path = request.url ?? "/";
  const method = request.method ?? "GET";
  const url = urlOf(path);
  const { api, operation } = routeOf(method, url.pathname, request.headers);
  return {
    api,
    operation,
    method,
    path,
    headers: request.headers,
    credentials: credentialsOf(request.headers, url.searchParams),
    model: "",
    toolNames: [],
    lastUserText: "",
    toolResults: [],
    streamed: false,
    // Read from the response itself, so that its status is known after it was read.
    get status() {
      return response.headersSent ? response.statusCode : undefined;
    },
    aborted: false,
    finished: false,
  };
}

/** Responds to one request. Rejects if the API refuses the body, or if the script fails. */
export async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  record: RecordedRequest,
  { decide, expectedKey, models, signal, changed }: Handling,
): Promise<void> {
  const api = APIS[record.api];
  const body = await readJson(request);
  record.body = body;
  if (expectedKey !== undefined && !record.credentials.includes(expectedKey)) {
    return sendJson(response, 401, api.error(401, "The API key is missing or wrong."));
  }
  switch (record.operation) {
    case "list-models":
      return sendJson(response, 200, api.modelList(models));
    case "count-tokens":
      return sendJson(response, 200, api.tokenCount());
    case "unknown": {
      const { pathname } = urlOf(record.path);
      return sendJson(response, 404, api.error(404, `No such endpoint: ${record.method} ${pathname}`));
    }
    case "generate": {
      const { target } = routeOf(record.method, urlOf(record.path).pathname, record.headers);
      const turn = api.readTurn(body, target);
      const { model, streamed, lastUserText, toolResults } = turn;
      const toolNames = turn.tools.map(qualifiedName);
      Object.assign(record, { model, streamed, lastUserText, toolResults, toolNames });
      record.answer = await decide(turn);
      changed();
      return respond(record.answer, { api, turn, body, response, signal });
    }
  }
}

/** 400 for a bad body, 500 for a failure of the script or the server; both with the message. */
export function fail(response: ServerResponse, record: RecordedRequest, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const isClientsFault = error instanceof ZodError || error instanceof SyntaxError;
  const message = error instanceof ZodError ? z.prettifyError(error) : String(error);
  const status = isClientsFault ? 400 : 500;
  sendJson(response, status, APIS[record.api].error(status, message));
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

/** Only a base: the path and query of a request are read. */
function urlOf(path: string): URL {
  return new URL(path, "http://model-server.invalid");
}
