import {
  type FetchHandler,
  JsonTooLarge,
  type Log,
  type Publication,
  parseBoundedJson,
  readText,
} from "@ambit/core/plugin";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isJsonContentType,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  originValidationResponse,
  PARSE_ERROR,
} from "@modelcontextprotocol/server";
import type { McpHttpConfig } from "./config.js";
import { heartbeat, ToolServer } from "./tool-server.js";

export const endpointPath = "/mcp";
/** Bytes of one request (1 MiB). */
const maxRequestBytes = 1024 * 1024;

/** A publication as a stateless MCP endpoint. */
export interface McpEndpoint {
  readonly handle: FetchHandler;
  /** Whether the tools were listed. */
  listed(): boolean;
  /** Aborts the open calls; later requests get 503. */
  close(): Promise<void>;
}

export function openEndpoint(publication: Publication, config: McpHttpConfig, log: Log): McpEndpoint {
  const { name, watch } = publication;
  const { heartbeatMs } = config;
  let isClosed = false;
  const server = new ToolServer(publication, heartbeatMs, log);
  const mcp = createMcpHandler(() => server.connection(), {
    // A JSON response has no headers until it is complete, and agents abandon such a call after a minute.
    responseMode: "sse",
    keepAliveMs: heartbeatMs,
    onerror: ({ message }) =>
      log.debug({ server: name, reason: message.slice(0, 300) }, "MCP request refused"),
  });
  const streams = watch === undefined ? undefined : new ChangeStreams(heartbeatMs);
  publication.watch?.((tools) => {
    if (isClosed) return;
    server.change(tools);
    mcp.notify.toolsChanged();
    streams?.changed();
  });
  return {
    handle: (request) => {
      const isStream = streams !== undefined && asksForStream(request);
      const refusal = refusalOf(request, isStream);
      if (refusal !== undefined) return refusal;
      if (isClosed) return problem(503, "The run no longer serves its tools.");
      if (isStream) return streams.open();
      return serve(mcp, request).then((response) => wholeIfSoon(response));
    },
    listed: () => server.isListed,
    close: async () => {
      isClosed = true;
      server.close();
      streams?.close();
      await mcp.close();
    },
  };
}

/** Reads the body here, because the SDK would clone the request first: a fifth of a call's time. */
async function serve(mcp: McpHttpHandler, request: Request): Promise<Response> {
  // The SDK rejects a body that isn't declared as JSON without reading it.
  if (!isJsonContentType(request.headers.get("content-type"))) return await mcp.fetch(request);
  const { text, isWhole } = await readText(request.body, maxRequestBytes);
  if (!isWhole) return problem(413, `The request is longer than ${maxRequestBytes} bytes.`);
  let parsedBody: unknown;
  try {
    parsedBody = parseBoundedJson(text);
  } catch (error) {
    if (error instanceof JsonTooLarge) return problem(413, `The request ${error.message}.`);
    return problem(400, "Parse error: the body is not JSON.", {}, PARSE_ERROR);
  }
  return await mcp.fetch(request, { parsedBody });
}

/** Whether an agent of the protocol's earlier generation wants to hear of changes. */
function asksForStream({ method, headers }: Request): boolean {
  return method === "GET" && headers.get("accept")?.includes("text/event-stream") === true;
}

/**
 * Serves only programs of this host, and none that a browser page of another origin controls (DNS rebinding).
 * Stateless: no session to DELETE, and no stream to open by GET where the tools don't change.
 */
function refusalOf(request: Request, isStream: boolean): Response | undefined {
  return (
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins()) ??
    (new URL(request.url).pathname === endpointPath
      ? undefined
      : problem(404, `Not found: MCP is at ${endpointPath}.`)) ??
    (request.method === "POST" || isStream
      ? undefined
      : problem(405, "Method not allowed: use POST.", { allow: "POST" }))
  );
}

function problem(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  code = -32_000,
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}

/** Milliseconds that a response gets to be complete. */
const soonMs = 50;

/**
 * A response that is complete soon, in one piece; any other as the stream that it is. To the agent, each piece of a
 * stream is a packet of its own: headers, answer and end of a short call are one instead of three.
 */
export async function wholeIfSoon(response: Response, milliseconds = soonMs): Promise<Response> {
  const { status, headers, body } = response;
  if (body === null) return response;
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), milliseconds);
  try {
    for (;;) {
      const reading = reader.read();
      const read = await Promise.race([reading, late.promise]);
      if (read === "late") return new Response(continued(pieces, reading, reader), { status, headers });
      if (read.done) return new Response(Buffer.concat(pieces), { status, headers });
      pieces.push(read.value);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** A stream of which some pieces were read, and the next one is being read. */
function continued(
  pieces: readonly Uint8Array[],
  next: ReturnType<typeof reader.read>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  let reading: typeof next | undefined = next;
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
    },
    async pull(controller) {
      const { done, value } = await (reading ?? reader.read());
      reading = undefined;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** Streams of one publication at one time: an agent has one, and opens another where it believes the first one lost. */
const maxStreams = 8;

/** Messages that wait for the reader of one. */
const maxUnread = 16;

const encoder = new TextEncoder();
const changed = encoder.encode(
  `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })}\n\n`,
);
const alive = encoder.encode(": alive\n\n");

/**
 * Streams on which agents of the protocol's earlier generation hear of changes: they open one by GET. The newer generation
 * subscribes by a request.
 */
class ChangeStreams {
  readonly #open = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #heartbeat: Disposable;

  constructor(heartbeatMs: number) {
    this.#heartbeat = heartbeat(heartbeatMs, () => this.#send(alive));
  }

  /** A response that stays open until the agent leaves, or `close`. The oldest one makes room. */
  open(): Response {
    const [oldest] = this.#open;
    if (this.#open.size >= maxStreams && oldest !== undefined) this.#end(oldest);
    let writer: ReadableStreamDefaultController<Uint8Array> | undefined;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        writer = controller;
        this.#open.add(controller);
        controller.enqueue(alive);
      },
      cancel: () => {
        if (writer !== undefined) this.#open.delete(writer);
      },
    });
    return new Response(stream, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  }

  changed(): void {
    this.#send(changed);
  }

  close(): void {
    this.#heartbeat[Symbol.dispose]();
    for (const stream of [...this.#open]) this.#end(stream);
  }

  /** A reader that takes nothing gets nothing more: the news is the same. */
  #send(message: Uint8Array): void {
    for (const stream of this.#open) if ((stream.desiredSize ?? 0) > -maxUnread) stream.enqueue(message);
  }

  #end(stream: ReadableStreamDefaultController<Uint8Array>): void {
    this.#open.delete(stream);
    stream.close();
  }
}
