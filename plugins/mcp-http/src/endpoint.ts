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
import { CallsInFlight } from "./calls-in-flight.js";
import { ChangeStreams } from "./change-streams.js";
import type { McpHttpConfig } from "./config.js";
import { Offer, toolServer } from "./tool-server.js";

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
  let listed = false;
  let closed = false;
  const calls = new CallsInFlight(log);
  const offer = new Offer(publication.tools);
  const service = {
    publication,
    offer,
    calls,
    heartbeatMs: config.heartbeatMs,
    log,
    onListed: () => {
      listed = true;
    },
  };
  const mcp = createMcpHandler(() => toolServer(service), {
    // A JSON response has no headers until it is complete, and agents abandon such a call after a minute.
    responseMode: "sse",
    keepAliveMs: config.heartbeatMs,
    onerror: ({ message }) =>
      log.debug({ server: publication.name, reason: message.slice(0, 300) }, "MCP request refused"),
  });
  const streams = publication.watch === undefined ? undefined : new ChangeStreams(config.heartbeatMs);
  publication.watch?.((tools) => {
    if (closed) return;
    offer.change(tools);
    mcp.notify.toolsChanged();
    streams?.changed();
  });
  return {
    handle: (request) => {
      const isStream = streams !== undefined && asksForStream(request);
      const refusal = refusalOf(request, isStream);
      if (refusal !== undefined) return refusal;
      if (closed) return problem(503, "The run no longer serves its tools.");
      if (isStream) return streams.open();
      return serve(mcp, request).then((response) => wholeIfSoon(response));
    },
    listed: () => listed,
    close: async () => {
      closed = true;
      calls.close();
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
