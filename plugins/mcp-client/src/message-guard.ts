import { countJsonInTurns, type JsonLimits, JsonTooLarge, messageJsonLimits } from "@ambit/core/plugin";
import { z } from "zod";
import { LineSplitter } from "./line-splitter.js";

/** Values of all messages until a server's tools are listed: 1,000 tools with 200 values each. */
const maxListingValues = 200_000;
/** Bytes that a line of an event counts in addition to its own. */
const lineCost = 64;

/** A message of the server is larger than allowed. The text completes "MCP server 'a' …". */
export class MessageRefused extends Error {
  override readonly name = "MessageRefused";
}

/** Bounds what the messages of one MCP server cost, before the SDK parses them. */
export class MessageGuard {
  readonly #limits: JsonLimits;
  #listingValues: number | undefined = 0;
  #refusal: MessageRefused | undefined;

  /** @param maxBytes of one message. */
  constructor(readonly maxBytes: number) {
    this.#limits = { ...messageJsonLimits, maxLength: maxBytes };
  }

  /** The last refusal. */
  get refusal(): MessageRefused | undefined {
    return this.#refusal;
  }

  /** Lines of a stdio server's output. Pushing one that is too long throws MessageRefused. */
  lines(): LineSplitter {
    return new LineSplitter(this.maxBytes, () => this.#refused(tooLong(this.maxBytes)));
  }

  /** From now on only each message by itself is bounded. */
  listed(): void {
    this.#listingValues = undefined;
  }

  /** Settles when the message may be parsed. @throws MessageRefused */
  async admit(text: string): Promise<void> {
    this.#listingValues = this.#listed(await this.#valuesOf(text));
  }

  /**
   * The response with a bounded body: a document, or a stream of events each of which is one message. In place of one
   * that is refused, the request gets an error.
   *
   * @param request the body of the request, which we sent.
   */
  async response(response: Response, request: string | undefined): Promise<Response> {
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    if (headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true) {
      const events = ReadableStream.from(this.#events(body, request));
      return new Response(events, { status, statusText, headers });
    }
    try {
      return new Response(await this.#document(body), { status, statusText, headers });
    } catch (error) {
      if (!(error instanceof MessageRefused) || request === undefined) throw error;
      return Response.json(failure(request, error));
    }
  }

  async #document(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body) {
      size += chunk.length;
      if (size > this.maxBytes) throw this.#refused(tooLong(this.maxBytes));
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    await this.admit(bytes.toString("utf8"));
    return bytes;
  }

  /** Server-sent events, each passed on once it is complete. Their lines end with a line feed. */
  async *#events(body: ReadableStream<Uint8Array>, request: string | undefined): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    try {
      for await (const event of this.#completeEvents(body)) {
        await this.admit(dataOf(event));
        yield encoder.encode(`${event.join("\n")}\n`);
      }
    } catch (error) {
      if (!(error instanceof MessageRefused) || request === undefined) throw error;
      yield encoder.encode(`event: message\ndata: ${JSON.stringify(failure(request, error))}\n\n`);
    }
  }

  async *#completeEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
    const lines = this.lines();
    let event: string[] = [];
    let size = 0;
    for await (const chunk of body) {
      for (const ended of lines.push(chunk)) {
        const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
        event.push(line);
        size += line.length + lineCost;
        if (size > this.maxBytes + 2 * lineCost) throw this.#refused(tooLong(this.maxBytes));
        if (line !== "") continue;
        yield event;
        event = [];
        size = 0;
      }
    }
  }

  async #valuesOf(text: string): Promise<number> {
    try {
      return (await countJsonInTurns(text, this.#limits)).values;
    } catch (error) {
      throw error instanceof JsonTooLarge ? this.#refused(`sent a message that ${error.message}`) : error;
    }
  }

  #listed(values: number): number | undefined {
    if (this.#listingValues === undefined) return undefined;
    const all = this.#listingValues + values;
    if (all <= maxListingValues) return all;
    throw this.#refused(`lists tools of more than ${maxListingValues.toLocaleString("en")} values`);
  }

  #refused(why: string): MessageRefused {
    this.#refusal = new MessageRefused(why);
    return this.#refusal;
  }
}

function tooLong(maxBytes: number): string {
  return `sent a message of more than ${maxBytes.toLocaleString("en")} bytes`;
}

const requestSchema = z.object({ id: z.union([z.string(), z.number()]) });

/** A JSON-RPC error in response to our request. */
function failure(request: string, { message }: MessageRefused): object {
  const { data } = requestSchema.safeParse(JSON.parse(request));
  return { jsonrpc: "2.0", id: data?.id ?? null, error: { code: -32_603, message: `it ${message}` } };
}

function dataOf(event: readonly string[]): string {
  return event.flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : [])).join("\n");
}
