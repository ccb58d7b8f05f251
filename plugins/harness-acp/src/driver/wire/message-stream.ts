import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import { isRecord, type JsonRecord } from "../json-reading.js";

/** The agent sent a line longer than allowed; none of it was kept. */
export class MessageTooLong extends Error {
  constructor(readonly limit: number) {
    super(`a message is longer than ${limit} characters`);
  }
}

/** The agent no longer reads its input. */
export class InputClosed extends Error {
  constructor(cause: unknown) {
    super("the agent's input is closed", { cause });
  }
}

/** How long its output is still read after its input closed: it may be about to exit with an error message. */
const drainMs = 1_000;

export interface MessageStreamOptions {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  /** Characters of one line of the agent's output. */
  readonly messageLimit: number;
  /** Sees every message first. It returns true to consume one, which the SDK then never gets. */
  tap(message: JsonRecord, size: number): boolean;
  /** Called before each read; a promise pauses reading until it settles. */
  room(): Promise<void> | undefined;
  /** Called for a line that is no JSON-RPC message; it is skipped. */
  onNoise(line: string): void;
}

/**
 * Newline-delimited JSON over an agent's stdin and stdout, in the form that the ACP SDK needs.
 *
 * The SDK's own `ndJsonStream` reads without limit whatever the consumer does, answers noise on stdout with an error
 * that some agents then act on, and drops every update that its validation doesn't know.
 */
export function messageStream(options: MessageStreamOptions): Stream {
  const inputClosed = new AbortController();
  const writable = outgoing(options.stdin, (error) => inputClosed.abort(new InputClosed(error)));
  return { readable: incoming(options, inputClosed.signal), writable };
}

function incoming(options: MessageStreamOptions, inputClosed: AbortSignal): ReadableStream<AnyMessage> {
  const reader = options.stdout.getReader();
  const lines = new LineSplitter(options.messageLimit);

  const deliver = (line: string, controller: ReadableStreamDefaultController<AnyMessage>): boolean => {
    if (line.trim() === "") return false;
    const message = parsed(line);
    if (message === undefined) {
      options.onNoise(line);
      return false;
    }
    if (options.tap(message, line.length)) return false;
    if (!isMessage(message)) {
      options.onNoise(line);
      return false;
    }
    controller.enqueue(message);
    return true;
  };

  let drainTimer: NodeJS.Timeout | undefined;
  const ended = () => clearTimeout(drainTimer);

  return new ReadableStream<AnyMessage>({
    start(controller) {
      inputClosed.addEventListener("abort", () => {
        drainTimer = setTimeout(() => controller.error(inputClosed.reason), drainMs);
      });
    },
    async pull(controller) {
      for (;;) {
        await options.room();
        const { value, done } = await reader.read();
        let delivered = false;
        for (const line of done ? lines.rest() : lines.push(value)) {
          if (deliver(line, controller)) delivered = true;
        }
        if (done) {
          ended();
          controller.close();
        }
        if (done || delivered) return;
      }
    },
    cancel: (reason) => {
      ended();
      return reader.cancel(reason);
    },
  });
}

function outgoing(
  stdin: WritableStream<Uint8Array>,
  broken: (error: unknown) => void,
): WritableStream<AnyMessage> {
  const encoder = new TextEncoder();
  const writer = stdin.getWriter();
  // A pipe may break between two writes, or after a write that Node reported as done.
  writer.closed.catch(broken);
  return new WritableStream<AnyMessage>({
    write: (message) => writer.write(encoder.encode(`${JSON.stringify(message)}\n`)),
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
}

/** Splits decoded text at line feeds. A line may arrive in any number of pieces. */
class LineSplitter {
  readonly #decoder = new TextDecoder();
  #open = "";

  constructor(readonly limit: number) {}

  push(bytes: Uint8Array): readonly string[] {
    const pieces = this.#decoder.decode(bytes, { stream: true }).split("\n");
    pieces[0] = this.#open + (pieces[0] ?? "");
    this.#open = pieces.pop() ?? "";
    if (this.#open.length > this.limit || pieces.some((line) => line.length > this.limit)) {
      throw new MessageTooLong(this.limit);
    }
    return pieces;
  }

  rest(): readonly string[] {
    return [this.#open + this.#decoder.decode()];
  }
}

function parsed(line: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    // Not JSON: a banner or a log line that a program printed to stdout. The caller reports it.
    return undefined;
  }
}

/** The messages that the SDK accepts without an error response: a request, a notification or a response. */
function isMessage(value: JsonRecord): value is JsonRecord & AnyMessage {
  if (value.jsonrpc !== "2.0") return false;
  const { id } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof value.method === "string") return hasId || id === undefined;
  return hasId && ("result" in value || "error" in value);
}
