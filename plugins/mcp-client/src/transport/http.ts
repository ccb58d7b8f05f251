import type { McpServer, Scope } from "@ambit/core/plugin";
import type { ConnectionGuard } from "@ambit/egress/client";
import { guardedDispatcher } from "@ambit/egress/dispatcher";
import { DecoratorHandler, type Dispatcher, fetch } from "undici";
import type { Channel } from "../connections.js";
import { reasonOfConnection } from "../failure.js";
import { NotSent } from "../lost.js";
import type { MessageGuard } from "../message-guard.js";
import { BoundedTransport } from "./bounded.js";
import { withError } from "./null-answer.js";
import { reconnectLater } from "./reconnection.js";

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
  const agent = guardedDispatcher(connections, {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
  });
  scope.defer(() => agent.destroy());
  const dispatcher = agent.compose(withoutLargeDecoders);
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
        const response = await guardedFetch(url, init, dispatcher);
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

/** Refuses an answer that undici would decode with more memory than a message may have: none was asked for. */
const withoutLargeDecoders: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const inner: Dispatcher.DispatchHandler = new DecoratorHandler(handler);
  return dispatch(options, {
    onRequestStart: (...values) => inner.onRequestStart?.(...values),
    onRequestUpgrade: (...values) => inner.onRequestUpgrade?.(...values),
    onResponseStart: (controller, status, headers, message) => {
      const coding = String(headers["content-encoding"] ?? "").trim();
      if (smallCodings.test(coding)) inner.onResponseStart?.(controller, status, headers, message);
      else
        controller.abort(new Error(`the server answered in ${JSON.stringify(coding)}, not in plain or gzip`));
    },
    onResponseData: (...values) => inner.onResponseData?.(...values),
    onResponseEnd: (...values) => inner.onResponseEnd?.(...values),
    onResponseError: (...values) => inner.onResponseError?.(...values),
  });
};

/**
 * Redirects are errors, since they would send the credentials elsewhere.
 *
 * @throws NotSent where no connection was made; the signal's reason; what broke the exchange off
 */
async function guardedFetch(
  url: string | URL | Request,
  init: RequestInit | undefined,
  dispatcher: Dispatcher,
): Promise<Response> {
  const { method, headers, body, signal } = init ?? {};
  const exchange = { isSent: false };
  const response = await fetch(String(url), {
    dispatcher: dispatcher.compose(noteStart(exchange)),
    redirect: "error",
    method,
    headers: [...new Headers(headers), ["accept-encoding", "identity"]],
    ...(typeof body === "string" ? { body } : {}),
    signal,
  }).catch((error: unknown) => {
    if (exchange.isSent || signal?.aborted === true) throw error;
    throw new NotSent(`could not be reached: ${reasonOfConnection(error)}`, "", { cause: error });
  });
  // undici's response as the platform's class, which the SDK requires.
  return new Response(response.body === null ? null : (response.body as ReadableStream<Uint8Array>), {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
  });
}

/** Notes that a request has a connection, and is about to be written to it. */
function noteStart(exchange: { isSent: boolean }): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const inner: Dispatcher.DispatchHandler = new DecoratorHandler(handler);
    return dispatch(options, {
      onRequestStart: (...values) => {
        exchange.isSent = true;
        inner.onRequestStart?.(...values);
      },
      onRequestUpgrade: (...values) => inner.onRequestUpgrade?.(...values),
      onResponseStart: (...values) => inner.onResponseStart?.(...values),
      onResponseData: (...values) => inner.onResponseData?.(...values),
      onResponseEnd: (...values) => inner.onResponseEnd?.(...values),
      onResponseError: (...values) => inner.onResponseError?.(...values),
    });
  };
}
