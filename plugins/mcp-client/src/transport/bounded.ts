import { AsyncLocalStorage } from "node:async_hooks";
import {
  type JSONRPCMessage,
  ProtocolErrorCode,
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/client";
import { z } from "zod";
import { AnswerLost } from "../failure.js";
import { isEventStream } from "../message-guard.js";

type RequestId = string | number;
type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport["send"]>[1]>;

/** Answers and notifications that the server hasn't accepted yet: each has a connection of its own. */
const maxUnaccepted = 32;
/** Milliseconds that the server has for one of them, as the SDK has for a request. */
const acceptMs = 60_000;
/** Milliseconds that a stream may stay open after its request was answered: servers end it at once. */
const lingerMs = 1_000;

const cancelledSchema = z.object({
  method: z.literal("notifications/cancelled"),
  params: z.object({ requestId: z.union([z.string(), z.number()]) }),
});

/**
 * MCP's HTTP transport with few more connections than there are open requests. The SDK alone leaves the connections of a
 * cancelled and of an answered request to the server, and opens one for every answer that the server asks for. Where a
 * response ends without the request's answer, it would wait for that until the request's time limit.
 */
export class BoundedTransport extends StreamableHTTPClientTransport {
  readonly #requests = new Map<unknown, AbortController>();
  readonly #sending: AsyncLocalStorage<{ isStream: boolean }>;
  #unaccepted = 0;
  /** What the server sent that isn't a message, for an error. */
  strayText = () => "";

  constructor(
    url: URL,
    { fetch, ...options }: StreamableHTTPClientTransportOptions & { readonly fetch: typeof globalThis.fetch },
  ) {
    const sending = new AsyncLocalStorage<{ isStream: boolean }>();
    super(url, {
      ...options,
      fetch: async (...request) => {
        const response = await fetch(...request);
        const exchange = sending.getStore();
        if (exchange !== undefined) exchange.isStream = isEventStream(response);
        return response;
      },
    });
    this.#sending = sending;
  }

  override async send(message: JSONRPCMessage, options: SendOptions = {}): Promise<void> {
    if ("method" in message && "id" in message) return await this.#ask(message, options);
    const cancelled = cancelledSchema.safeParse(message);
    if (cancelled.success) this.#end(cancelled.data.params.requestId);
    await this.#tell(message, options);
  }

  /** The server's answer to the request has arrived. */
  answered(id: unknown): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    this.#requests.delete(id);
    setTimeout(() => request.abort(), lingerMs).unref();
  }

  async #ask(message: { readonly id: RequestId } & JSONRPCMessage, options: SendOptions): Promise<void> {
    const { id } = message;
    const request = new AbortController();
    this.#requests.set(id, request);
    options.requestSignal?.addEventListener("abort", () => this.#end(id), { once: true });
    const exchange = { isStream: false };
    const onRequestStreamEnd = () => {
      options.onRequestStreamEnd?.();
      this.#lose(id);
    };
    try {
      const sent = { ...options, requestSignal: joined(request.signal, options), onRequestStreamEnd };
      await this.#sending.run(exchange, () => super.send(message, sent));
      if (!exchange.isStream) this.#lose(id);
    } catch (error) {
      this.#requests.delete(id);
      throw error;
    }
  }

  async #tell(message: JSONRPCMessage, options: SendOptions): Promise<void> {
    if (this.#unaccepted >= maxUnaccepted) throw new Error("the server accepts no further messages");
    this.#unaccepted += 1;
    try {
      await super.send(message, {
        ...options,
        requestSignal: joined(AbortSignal.timeout(acceptMs), options),
      });
    } finally {
      this.#unaccepted -= 1;
    }
  }

  /** The response is over: without an answer, none will come. */
  #lose(id: RequestId): void {
    if (!this.#requests.delete(id)) return;
    const { InternalError: code } = ProtocolErrorCode;
    const data = new AnswerLost(`ended its response without an answer${this.strayText()}`);
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code, message: data.message, data } });
  }

  #end(id: unknown): void {
    this.#requests.get(id)?.abort();
    this.#requests.delete(id);
  }
}

function joined(signal: AbortSignal, { requestSignal }: SendOptions): AbortSignal {
  return requestSignal === undefined ? signal : AbortSignal.any([signal, requestSignal]);
}
