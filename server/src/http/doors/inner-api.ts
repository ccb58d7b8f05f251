import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { outsideOffers } from "@ambit/core";
import type { Caller } from "../../tenants/caller.js";

/**
 * The server's API for doors: each request goes to the routes within this process, and speaks for one caller. It passes every
 * check of a route but that of the token, which its caller's own request has passed.
 */
export class InnerApi {
  readonly #callers = new WeakMap<IncomingMessage, Caller>();
  /**
   * What is being answered, and by what it was asked for: the signal of a request follows the one that it was made with only while
   * the request itself is reachable.
   */
  readonly #open = new Map<InnerSocket, readonly unknown[]>();

  /** @param answer what a server's own requests get. Resolves with Hono's `RESPONSE_ALREADY_SENT` where it writes to the exchange */
  constructor(
    readonly answer: (
      request: Request,
      exchange: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
    ) => Response | Promise<Response>,
  ) {}

  /** The caller for whom a request speaks; undefined for a request from outside. */
  callerOf(incoming: IncomingMessage): Caller | undefined {
    return this.#callers.get(incoming);
  }

  /** The API as this caller. It rejects, and errors a body, when the response ends early. */
  fetchAs(caller: Caller): typeof fetch {
    return (input, init) => outsideOffers(() => this.#respond(caller, input, sendable(input, init)));
  }

  /** Ends what is being answered. */
  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  async #respond(caller: Caller, input: unknown, sent: Sendable): Promise<Response> {
    const { url, method, headers, body, signal } = sent;
    signal?.throwIfAborted();
    const { pathname, search } = new URL(url);
    const target = `${pathname}${search}`;
    const socket = new InnerSocket();
    const incoming = new InnerRequest(socket, method, target, headers, body);
    // As to a client of HTTP 1.0, since the request has no version: what is written is the body, without lengths of chunks.
    const outgoing = new ServerResponse(incoming);
    outgoing.assignSocket(socket);
    // What Node's own server does with the sockets that it accepts.
    outgoing.once("finish", () => socket.destroySoon());
    socket.on("drain", () => outgoing.emit("drain"));
    this.#callers.set(incoming, caller);
    this.#open.set(socket, [input, sent]);
    const leave = () => socket.leave(signal?.reason);
    signal?.addEventListener("abort", leave);
    socket.once("close", () => {
      signal?.removeEventListener("abort", leave);
      this.#open.delete(socket);
      incoming.destroy();
    });
    const request = new Request(`http://localhost${target}`, { method, headers });
    const answered = (async () => {
      const response = await this.answer(request, { incoming, outgoing });
      if (response.headers.has("x-hono-already-sent")) return await socket.response;
      socket.destroySoon();
      return response;
    })();
    return await Promise.race([socket.response, answered]);
  }
}

/** A call of `fetch`, with a text as it is: as the stream of a `Request`, it takes longer than the exchange itself. */
interface Sendable {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal | null;
}

function sendable(input: string | URL | Request, init: RequestInit = {}): Sendable {
  const { method = "GET", headers, body = null, signal = null } = init;
  if (input instanceof Request || (body !== null && typeof body !== "string"))
    return new Request(input, init);
  return { url: String(input), method, headers: new Headers(headers), body, signal };
}

/** A request as the routes read it. */
class InnerRequest extends IncomingMessage {
  /** Undefined for a text, which is there at once. */
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #text: string;

  constructor(socket: Socket, method: string, url: string, headers: Headers, body: Sendable["body"]) {
    super(socket);
    const sent: Record<string, string> = { ...Object.fromEntries(headers), host: "localhost" };
    this.method = method;
    this.url = url;
    this.headers = sent;
    this.headersDistinct = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, [value]]));
    this.#text = typeof body === "string" ? body : "";
    this.#reader = typeof body === "string" ? undefined : body?.getReader();
  }

  override _read(size: number): void {
    super._read(size);
    if (this.#reader === undefined) {
      this.complete = true;
      this.push(this.#text);
      this.push(null);
      return;
    }
    this.#reader.read().then(
      ({ value, done }) => {
        this.complete = done;
        this.push(done ? null : value);
      },
      (error: Error) => void this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#reader?.cancel(error).catch(() => undefined);
    super._destroy(error, done);
  }
}

interface SocketPart {
  readonly chunk: string | Buffer;
  readonly encoding: BufferEncoding;
}

const bytesOf = ({ chunk, encoding }: SocketPart) =>
  typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;

/** Bytes of a response that may wait for its reader. */
const aheadBytes = 65_536;
const endOfHead = "\r\n\r\n";

/** What Node takes for the connection of a response, which is read within this process. */
class InnerSocket extends Socket {
  readonly #response = Promise.withResolvers<Response>();
  readonly #body: ReadableStream<Uint8Array>;
  #reader: ReadableStreamDefaultController<Uint8Array> | undefined;
  #head: Buffer | undefined = Buffer.alloc(0);
  #proceed: (() => void) | undefined;

  constructor() {
    super();
    this.#body = new ReadableStream<Uint8Array>(
      {
        start: (reader) => {
          this.#reader = reader;
        },
        pull: () => this.#proceed?.(),
        cancel: () => void this.destroy(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: aheadBytes }),
    );
    this.#response.promise.catch(() => undefined);
  }

  /** Rejects if it ends before its head. */
  get response(): Promise<Response> {
    return this.#response.promise;
  }

  /** Ends the response early, with the reason of its signal, as `fetch` does. */
  leave(reason: unknown): void {
    this.#fail(reason);
    this.destroy();
  }

  override _write(part: string | Buffer, encoding: BufferEncoding, done: () => void): void {
    const bytes = bytesOf({ chunk: part, encoding });
    if (this.#head === undefined) this.#pass(bytes);
    else this.#begin(Buffer.concat([this.#head, bytes]));
    this.#proceed = () => {
      this.#proceed = undefined;
      done();
    };
    if ((this.#reader?.desiredSize ?? 0) > 0) this.#proceed();
  }

  override _writev(parts: readonly SocketPart[], done: () => void): void {
    this._write(Buffer.concat(parts.map(bytesOf)), "utf8", done);
  }

  override _final(done: () => void): void {
    this.#reader?.close();
    this.#reader = undefined;
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#fail(error ?? new Error("the response has ended early"));
    super._destroy(error, done);
  }

  #fail(cause: unknown): void {
    this.#response.reject(cause);
    this.#reader?.error(cause);
    this.#reader = undefined;
  }

  #begin(begun: Buffer): void {
    const end = begun.indexOf(endOfHead);
    this.#head = end === -1 ? begun : undefined;
    if (end === -1) return;
    const [first = "", ...lines] = begun.toString("latin1", 0, end).split("\r\n");
    const status = Number(first.split(" ")[1]);
    const headers = lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
    this.#response.resolve(new Response(bodiless.has(status) ? null : this.#body, { status, headers }));
    this.#pass(begun.subarray(end + endOfHead.length));
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#reader?.enqueue(bytes);
  }
}

/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);
