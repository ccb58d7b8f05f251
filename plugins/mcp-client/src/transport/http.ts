import type { IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { constants, createUnzip } from "node:zlib";
import type { McpServer, Scope } from "@ambit/core/plugin";
import { type ConnectionGuard, HttpClient } from "@ambit/egress/client";
import { z } from "zod";
import type { Channel } from "../connections.js";
import { NotSent, reasonOfConnection } from "../failure.js";

import type { MessageGuard } from "../message-guard.js";
import { BoundedTransport } from "./bounded.js";

type HttpConnection = Extract<McpServer["connection"], { readonly type: "http" }>;

/**
 * Milliseconds that an unused connection is kept. Servers close theirs after 5 s and more: a call that is sent just then would have
 * an unknown outcome.
 */
const idleMs = 1_000;

/**
 * Opens channels to a server over HTTP, with its credentials. Their sockets are shared, and end with the scope.
 */
export function httpChannels(
  connection: HttpConnection,
  connections: ConnectionGuard,
  scope: Scope,
): (guard: MessageGuard) => Channel {
  const client = new HttpClient(connections, { idleMs });
  scope.defer(() => client.close());
  const credentials = (connection.credentials ?? []).map(
    ({ binding, value }) => [binding.name, value] as const,
  );
  const headers = { ...connection.headers, ...Object.fromEntries(credentials) };
  return (guard) => {
    const transport = new BoundedTransport(new URL(connection.url), {
      reconnectionScheduler: reconnectLater,
      requestInit: { headers },
      fetch: async (url, init) => {
        const request = typeof init?.body === "string" ? init.body : undefined;
        const response = await guardedFetch(url, init, client);
        return await guard.response(await withError(response, request), request);
      },
    });
    guard.onAnswer = (id) => transport.answered(id);
    transport.strayText = () => guard.strayText;
    return { transport, guard, hasEnded: () => false, ending: async () => ({ how: "", output: "" }) };
  };
}

/** Codings whose decoder holds little. Those of `br` and `zstd` hold up to 16 and 128 MiB outside V8's heap. */
const smallCodings = /^(?:|identity|x-gzip|gzip|deflate)$/i;
/** Statuses of redirects: errors, since they would send the credentials elsewhere. */
const redirects: readonly number[] = [301, 302, 303, 307, 308];
/** Statuses whose responses have no body. */
const bodiless: readonly number[] = [204, 205, 304];

/** @throws NotSent where no connection was made; the signal's reason; what broke the exchange off */
async function guardedFetch(
  url: string | URL | Request,
  { method = "GET", headers, body, signal }: RequestInit = {},
  client: HttpClient,
): Promise<Response> {
  let isSent = false;
  const request = {
    method,
    url: new URL(String(url)),
    headers: {
      "user-agent": "ambit",
      ...Object.fromEntries(new Headers(headers)),
      "accept-encoding": "identity",
    },
    ...(typeof body === "string" ? { body } : {}),
  };
  const onConnected = () => {
    isSent = true;
  };
  const response = await client
    .send(request, { signal: signal ?? new AbortController().signal, onConnected })
    .catch((error: unknown) => {
      if (isSent || signal?.aborted === true) throw error;
      throw new NotSent(`could not be reached: ${reasonOfConnection(error)}`, "", { cause: error });
    });
  const { statusCode: status = 0, statusMessage: statusText = "" } = response;
  if (redirects.includes(status)) {
    response.destroy();
    throw new Error("unexpected redirect");
  }
  const responseHeaders = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  if (bodiless.includes(status)) response.resume();
  return new Response(bodiless.includes(status) ? null : plainBody(response), {
    status,
    statusText,
    headers: responseHeaders,
  });
}

/** Some servers compress what nobody asked them to compress. @throws Error for a coding whose decoder needs much memory */
function plainBody(response: IncomingMessage): Readable {
  const coding = (response.headers["content-encoding"] ?? "").trim();
  if (coding === "" || /^identity$/i.test(coding)) return response;
  if (!smallCodings.test(coding)) {
    response.destroy();
    throw new Error(`the server answered in ${JSON.stringify(coding)}, not in plain or gzip`);
  }
  // What has arrived is decoded at once, as a stream of events needs it, and a missing end is no error.
  const decoder = createUnzip({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
  pipeline(response, decoder, () => {});
  return decoder;
}

/** Bytes of a body that may be `null`, with white space. */
const maxNullLength = 8;

const requestSchema = z.object({ id: z.union([z.string(), z.number()]) });

/**
 * Some servers answer a method that they don't know with `null`, which isn't JSON-RPC: here it becomes the error that it
 * stands for, so that the client asks in another way.
 *
 * @param request what we sent, in JSON.
 */
async function withError(response: Response, request: string | undefined): Promise<Response> {
  const length = Number(response.headers.get("content-length") ?? Number.NaN);
  if (!response.ok || !(length <= maxNullLength) || request === undefined) return response;
  const text = await response.text();
  const answered = requestSchema.safeParse(JSON.parse(request));
  if (text.trim() !== "null" || !answered.success) return new Response(text === "" ? null : text, response);
  const error = { code: -32_601, message: "Method not found" };
  return Response.json({ jsonrpc: "2.0", id: answered.data.id, error });
}

/** Milliseconds before a stream that the server ended is opened again. */
const pauseMs = { min: 1_000, max: 60_000 };

/**
 * When a stream is opened again, whatever pause its server asks for: without one, it could end each stream at once, and the
 * client would do nothing else. A timer takes less than 25 days.
 *
 * @returns what cancels it
 */
function reconnectLater(reconnect: () => void, askedMs: number): () => void {
  const timer = setTimeout(reconnect, reconnectionPause(askedMs)).unref();
  return () => clearTimeout(timer);
}

/** Pure. */
export function reconnectionPause(askedMs: number): number {
  return Math.max(pauseMs.min, Math.min(askedMs, pauseMs.max));
}
