import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import { LineSplitter, turnForText } from "@ambit/core/plugin";
import type { JsonRecord } from "../json-reading.js";
import { AgentMessageRefused, type MessageIntake, type Taken } from "./message-intake.js";

/** The agent no longer reads its input. */
export class InputClosed extends Error {
  constructor(cause: unknown) {
    super("the agent's input is closed", { cause });
  }
}

/** Requests of an agent whose answers it hasn't read. Agents have a few at a time. */
const maxUnanswered = 1_000;

/** How long its output is still read after its input closed: it may be about to exit with an error message. */
const drainMs = 1_000;

export interface MessageStreamOptions {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly intake: MessageIntake;
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
  const unanswered = { count: 0 };
  const writable = outgoing(options.stdin, unanswered, (error) => inputClosed.abort(new InputClosed(error)));
  return { readable: incoming(options, unanswered, inputClosed.signal), writable };
}

/** The agent's requests that it has no answer to yet, or whose answer waits until it reads. */
interface Unanswered {
  count: number;
}

function incoming(
  options: MessageStreamOptions,
  unanswered: Unanswered,
  inputClosed: AbortSignal,
): ReadableStream<AnyMessage> {
  const reader = options.stdout.getReader();
  let refused: AgentMessageRefused | undefined;
  let refuse = (reason: AgentMessageRefused) => {
    refused = reason;
  };
  const held = options.intake.line((reason) => refuse(reason));
  const lines = new LineSplitter();

  const deliver = (
    line: string,
    taken: Taken | undefined,
    controller: ReadableStreamDefaultController<AnyMessage>,
  ): boolean => {
    if (taken === undefined) {
      options.onNoise(line);
      return false;
    }
    const { message, size } = taken;
    if (options.tap(message, size)) return false;
    if (!isMessage(message)) {
      options.onNoise(line);
      return false;
    }
    if ("method" in message && "id" in message) {
      unanswered.count += 1;
      if (unanswered.count > maxUnanswered) throw new AgentMessageRefused(tooManyRequests);
    }
    controller.enqueue(message);
    return true;
  };

  /** A program may print a log text without its line feed: the message that follows is on the same line. */
  const take = (line: string): ReadLine => {
    const taken = options.intake.take(line);
    const at = taken === undefined ? line.indexOf(messageHead, 1) : -1;
    if (at === -1) return { line, taken };
    options.onNoise(line.slice(0, at));
    const message = line.slice(at);
    return { line: message, taken: options.intake.take(message) };
  };

  let drainTimer: NodeJS.Timeout | undefined;
  const ended = () => {
    clearTimeout(drainTimer);
    held.end();
  };

  return new ReadableStream<AnyMessage>({
    start(controller) {
      inputClosed.addEventListener("abort", () => {
        drainTimer = setTimeout(() => controller.error(inputClosed.reason), drainMs);
      });
      refuse = (reason) => {
        refused = reason;
        controller.error(reason);
        ended();
        void reader.cancel(reason).catch(() => undefined);
      };
    },
    async pull(controller) {
      try {
        for (;;) {
          await options.room();
          const { value, done } = await reader.read();
          if (refused !== undefined) return;
          let delivered = false;
          const complete = done ? [lines.end() ?? ""] : [...lines.push(value)];
          held.hold(lines.openCharacters);
          for (const line of complete) {
            if (line.trim() === "") continue;
            const turn = turnForText(line.length);
            if (turn !== undefined) await turn;
            if (refused !== undefined) return;
            const { line: read, taken } = take(line);
            if (deliver(read, taken, controller)) delivered = true;
          }
          if (done) {
            ended();
            controller.close();
          }
          if (done || delivered) return;
        }
      } catch (error) {
        ended();
        throw error;
      }
    },
    cancel: (reason) => {
      ended();
      return reader.cancel(reason);
    },
  });
}

/** How every agent begins its messages. */
const messageHead = '{"jsonrpc"';

/** A line, or the part of it that is a message. */
interface ReadLine {
  readonly line: string;
  /** Undefined if it isn't JSON. */
  readonly taken: Taken | undefined;
}

const tooManyRequests = `sent more than ${maxUnanswered.toLocaleString("en")} requests without reading their answers`;

function outgoing(
  stdin: WritableStream<Uint8Array>,
  unanswered: Unanswered,
  broken: (error: unknown) => void,
): WritableStream<AnyMessage> {
  const encoder = new TextEncoder();
  const writer = stdin.getWriter();
  // A pipe may break between two writes, or after a write that Node reported as done.
  writer.closed.catch(broken);
  return new WritableStream<AnyMessage>({
    write: async (message) => {
      await writer.write(encoder.encode(`${JSON.stringify(message)}\n`));
      if (!("method" in message)) unanswered.count -= 1;
    },
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  });
}

/** The messages that the SDK accepts without an error response: a request, a notification or a response. */
function isMessage(value: JsonRecord): value is JsonRecord & AnyMessage {
  if (value.jsonrpc !== "2.0") return false;
  const { id } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof value.method === "string") return hasId || id === undefined;
  return hasId && ("result" in value || "error" in value);
}
