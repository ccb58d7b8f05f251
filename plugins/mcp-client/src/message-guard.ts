import {
  isJsonObject,
  type JsonLimits,
  JsonTooLarge,
  LineSplitter,
  messageJsonLimits,
  type PublishedTool,
  parseCountedJson,
  readText,
  wholeWords,
} from "@ambit/core/plugin";
import { z } from "zod";
import type { McpClientConfig } from "./config.js";
import { NotTaken, reduced } from "./reduced-message.js";

/** An answer that isn't JSON, by whose name the SDK knows it. The message reads on after the server's name. */
export class NotJson extends SyntaxError {}

/** Values of all messages until a server's tools are listed: 1,000 tools with 200 values each. */
const maxListingValues = 200_000;
/** Characters of a text that isn't a message. */
const maxStray = 200;
/** Bytes that a line of an event counts in addition to its own. */
const lineCost = 64;

/** A message of the server is larger than allowed. The text completes "MCP server 'a' …". */
export class MessageRefused extends Error {
  override readonly name = "MessageRefused";
}

/**
 * Bounds what the messages of one MCP server cost, before the SDK parses them: the SDK gets what it needs of each.
 */
export class MessageGuard {
  /** Called with the id of each request that the server has answered, before the SDK gets the answer. */
  onAnswer: (id: unknown) => void = () => {};
  readonly #limits: JsonLimits;
  readonly #maxBytes: number;
  readonly #tools = new Map<string, PublishedTool>();
  readonly #cursors = new Set<unknown>();
  readonly #outputs: KeptResults;
  #listingValues: number | undefined = 0;
  /** Whether only lists of tools count: answers to calls may come between the pages. */
  #isListingAgain = false;
  #refusal: MessageRefused | undefined;
  #stray = "";

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

  /** The beginning of the last text that wasn't a message, for an error; empty where there was none. */
  get strayText(): string {
    return this.#stray === "" ? "" : `; it sent text that isn't a message: ${this.#stray}`;
  }

  /** Remembers a text that isn't a message. */
  noteStray(text: string): void {
    this.#stray = wholeWords(text.trim(), maxStray).replaceAll("\n", " ");
  }

  /** Lines of a stdio server's output. Pushing one that is too long throws MessageRefused. */
  lines(): LineSplitter {
    return new LineSplitter({
      maxBytes: this.#maxBytes,
      tooLong: () => this.#refused(this.#tooLong()),
    });
  }

  /** From now on the tools of all pages are kept, and bounded together. */
  list(): void {
    this.listed();
    this.#listingValues = 0;
    this.#isListingAgain = true;
  }

  /** The tools of all pages, one of each name. From now on only each message by itself is bounded. */
  listed(): readonly PublishedTool[] {
    this.#listingValues = undefined;
    const tools = [...this.#tools.values()];
    this.#tools.clear();
    this.#cursors.clear();
    return tools;
  }

  /** The text that a result's content stands for; undefined if it isn't kept any more. */
  outputOf(text: string): string | undefined {
    return this.#outputs.take(text);
  }

  /** What the SDK may parse in place of this text; undefined if it isn't JSON. @throws MessageRefused */
  admit(text: string): string | undefined {
    try {
      const { value, values } = parseCountedJson(text, this.#limits);
      const { message, tools } = reduced(value, (output) => this.#outputs.keep(output));
      if (tools !== undefined || !this.#isListingAgain) this.#listingValues = this.#listed(values);
      if (isJsonObject(value) && value.method === undefined) this.onAnswer(value.id);
      if (tools === undefined || this.#listingValues === undefined) return JSON.stringify(message);
      return JSON.stringify(this.#isRepeated(tools, message) ? withoutCursor(message) : message);
    } catch (error) {
      if (error instanceof SyntaxError) {
        this.noteStray(text);
        return undefined;
      }
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
    if (isEventStream(response)) {
      const events = ReadableStream.from(this.#events(body, request));
      return new Response(events, { status, statusText, headers });
    }
    try {
      const { text, message } = await this.#document(body);
      if (message === undefined && response.ok && isJson(response) && wantsAnswer(request))
        throw new NotJson(`sent an answer that isn't JSON: ${this.#stray}`);
      return new Response(message ?? text, { status, statusText, headers });
    } catch (error) {
      if (!(error instanceof MessageRefused) || request === undefined) throw error;
      return Response.json(failure(request, error));
    }
  }

  async #document(
    body: ReadableStream<Uint8Array>,
  ): Promise<{ readonly text: string; readonly message: string | undefined }> {
    const { text, isWhole } = await readText(body, this.#maxBytes);
    if (!isWhole) throw this.#refused(this.#tooLong());
    return { text, message: this.admit(text) };
  }

  /** Server-sent events, each passed on once it is complete. Their lines end with a line feed. */
  async *#events(body: ReadableStream<Uint8Array>, request: string | undefined): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    try {
      for await (const event of this.#completeEvents(body)) {
        const data = dataOf(event);
        const admitted = data === "" ? [] : [`data: ${this.admit(data) ?? notJson(data)}`];
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
    for await (const chunk of body) {
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

  /** Adds a page to the list. A server that repeats one would never come to an end: it is the last page. */
  #isRepeated(tools: readonly PublishedTool[], page: unknown): boolean {
    const listedBefore = this.#tools.size;
    for (const tool of tools) if (!this.#tools.has(tool.name)) this.#tools.set(tool.name, tool);
    const cursor = isJsonObject(page) && isJsonObject(page.result) ? page.result.nextCursor : undefined;
    const isRepeated = this.#cursors.has(cursor) || (tools.length > 0 && this.#tools.size === listedBefore);
    this.#cursors.add(cursor);
    return isRepeated;
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

function withoutCursor(page: unknown): unknown {
  if (!isJsonObject(page) || !isJsonObject(page.result)) return page;
  const { nextCursor: _, ...result } = page.result;
  return { ...page, result };
}

function settingOf({ exceeded }: JsonTooLarge): string {
  return exceeded === "maxValues" ? " (mcp-client's maxMessageValues)" : "";
}

/** The beginning of a text that isn't JSON, for the SDK to report. */
function notJson(text: string): string {
  return `not JSON: ${text.slice(0, maxStray).replaceAll("\n", " ")}`;
}

/** Whether a response is a stream of events. */
export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
}

function isJson({ headers }: Response): boolean {
  return headers.get("content-type")?.toLowerCase().startsWith("application/json") === true;
}

const requestSchema = z.object({ id: z.union([z.string(), z.number()]) });

/** @param text of what we sent. Notifications have no answer. */
function wantsAnswer(text: string | undefined): boolean {
  return text !== undefined && requestSchema.safeParse(JSON.parse(text)).success;
}

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

/**
 * The outputs of calls while the SDK handles their results, which has only their keys: to copy and check megabytes of text
 * there would take one long turn of the event loop.
 */
export class KeptResults {
  readonly #byKey = new Map<string, string>();
  #last = 0;
  #characters = 0;

  /** @param maxCharacters of all. Beyond, the oldest goes: a server may send results that nothing waits for. */
  constructor(readonly maxCharacters: number) {}

  /** @returns its key */
  keep(output: string): string {
    this.#last += 1;
    const key = String(this.#last);
    this.#byKey.set(key, output);
    this.#characters += output.length + costOfOne;
    for (const oldest of this.#byKey.keys()) {
      if (this.#characters <= this.maxCharacters || oldest === key) break;
      this.take(oldest);
    }
    return key;
  }

  take(key: string): string | undefined {
    const output = this.#byKey.get(key);
    if (output === undefined) return undefined;
    this.#byKey.delete(key);
    this.#characters -= output.length + costOfOne;
    return output;
  }
}

/** Characters that an empty output counts as. */
const costOfOne = 64;
