import {
  isJsonObject,
  type JsonLimits,
  JsonTooLarge,
  messageJsonLimits,
  type PublishedTool,
} from "@ambit/core/plugin";
import { inTurns, parseJsonInTurns, textInTurns } from "@ambit/json-turns";
import { z } from "zod";
import type { McpClientConfig } from "./config.js";
import { KeptResults } from "./kept-results.js";
import { LineSplitter } from "./line-splitter.js";
import { NotTaken, reduced } from "./reduced-message.js";

/** Values of all messages until a server's tools are listed: 1,000 tools with 200 values each. */
const maxListingValues = 200_000;
/** Bytes that a line of an event counts in addition to its own. */
const lineCost = 64;

/** A message of the server is larger than allowed. The text completes "MCP server 'a' …". */
export class MessageRefused extends Error {
  override readonly name = "MessageRefused";
}

/**
 * Bounds what the messages of one MCP server cost, before the SDK parses them: each is read and parsed in turns of the event
 * loop, and the SDK gets what it needs of it.
 */
export class MessageGuard {
  /** Called with the id of each request that the server has answered, before the SDK gets the answer. */
  onAnswer: (id: unknown) => void = () => {};
  readonly #limits: JsonLimits;
  readonly #maxBytes: number;
  readonly #tools: PublishedTool[] = [];
  readonly #outputs: KeptResults;
  #listingValues: number | undefined = 0;
  #refusal: MessageRefused | undefined;

  constructor(config: Pick<McpClientConfig, "maxMessageBytes" | "maxMessageValues">) {
    this.#maxBytes = config.maxMessageBytes;
    this.#outputs = new KeptResults(2 * config.maxMessageBytes);
    this.#limits = {
      ...messageJsonLimits,
      maxLength: config.maxMessageBytes,
      maxValues: config.maxMessageValues,
    };
  }

  /** The last refusal. */
  get refusal(): MessageRefused | undefined {
    return this.#refusal;
  }

  /** Lines of a stdio server's output. Pushing one that is too long throws MessageRefused. */
  lines(): LineSplitter {
    return new LineSplitter(this.#maxBytes, () => this.#refused(this.#tooLong()));
  }

  /** The tools of all pages. From now on only each message by itself is bounded. */
  listed(): readonly PublishedTool[] {
    this.#listingValues = undefined;
    return this.#tools.splice(0);
  }

  /** The text that a result's content stands for; undefined if it isn't kept any more. */
  outputOf(text: string): string | undefined {
    return this.#outputs.take(text);
  }

  /** What the SDK may parse in place of this text; undefined if it isn't JSON. @throws MessageRefused */
  async admit(text: string): Promise<string | undefined> {
    try {
      const { value, values } = await parseJsonInTurns(text, this.#limits);
      this.#listingValues = this.#listed(values);
      const { message, tools = [] } = await reduced(value, (output) => this.#outputs.keep(output));
      if (this.#listingValues !== undefined) for (const tool of tools) this.#tools.push(tool);
      if (isJsonObject(value) && value.method === undefined) this.onAnswer(value.id);
      return JSON.stringify(message);
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      if (error instanceof JsonTooLarge)
        throw this.#refused(`sent a message that ${error.message}${settingOf(error)}`);
      throw error instanceof NotTaken ? this.#refused(error.message) : error;
    }
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

  async #document(body: ReadableStream<Uint8Array>): Promise<string> {
    const { text, isWhole } = await textInTurns(body, this.#maxBytes);
    if (!isWhole) throw this.#refused(this.#tooLong());
    return (await this.admit(text)) ?? notJson(text);
  }

  /** Server-sent events, each passed on once it is complete. Their lines end with a line feed. */
  async *#events(body: ReadableStream<Uint8Array>, request: string | undefined): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    try {
      for await (const event of this.#completeEvents(body)) {
        const data = dataOf(event);
        const admitted = data === "" ? [] : [`data: ${(await this.admit(data)) ?? notJson(data)}`];
        const others = event.filter((line) => !isData(line));
        yield encoder.encode(`${[...admitted, ...others].join("\n")}\n`);
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
    for await (const chunk of inTurns(body)) {
      for (const ended of lines.push(chunk)) {
        const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
        event.push(line);
        size += line.length + lineCost;
        if (size > this.#maxBytes + 2 * lineCost) throw this.#refused(this.#tooLong());
        if (line !== "") continue;
        // An event without a field is none.
        if (event.length > 1) yield event;
        event = [];
        size = 0;
      }
    }
  }

  #listed(values: number): number | undefined {
    if (this.#listingValues === undefined) return undefined;
    const all = this.#listingValues + values;
    if (all <= maxListingValues) return all;
    throw this.#refused(`lists tools of more than ${maxListingValues.toLocaleString("en")} values`);
  }

  #tooLong(): string {
    return `sent a message of more than ${this.#maxBytes.toLocaleString("en")} bytes (mcp-client's maxMessageBytes)`;
  }

  #refused(why: string): MessageRefused {
    this.#refusal = new MessageRefused(why);
    return this.#refusal;
  }
}

function settingOf({ exceeded }: JsonTooLarge): string {
  return exceeded === "maxValues" ? " (mcp-client's maxMessageValues)" : "";
}

/** The beginning of a text that isn't JSON, for the SDK to report. */
function notJson(text: string): string {
  return `not JSON: ${text.slice(0, 200).replaceAll("\n", " ")}`;
}

const requestSchema = z.object({ id: z.union([z.string(), z.number()]) });

/** A JSON-RPC error in response to our request. */
function failure(request: string, { message }: MessageRefused): object {
  const { data } = requestSchema.safeParse(JSON.parse(request));
  return { jsonrpc: "2.0", id: data?.id ?? null, error: { code: -32_603, message: `it ${message}` } };
}

function dataOf(event: readonly string[]): string {
  return event.flatMap((line) => (isData(line) ? [line.slice(5)] : [])).join("\n");
}

function isData(line: string): boolean {
  return line.startsWith("data:");
}
