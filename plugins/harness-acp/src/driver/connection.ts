import type { AnyMessage, Stream } from "@agentclientprotocol/sdk/unstable";
import * as acp from "@agentclientprotocol/sdk/unstable";
import {
  HarnessFailed,
  isJsonObject,
  type JsonObject,
  LineSplitter,
  type Log,
  messageOf,
  type Process,
  resultWithin,
  TextEnd,
  turnForText,
} from "@ambit/core/plugin";
import { agentGone, InputClosed, requestFailure } from "./failures.js";
import { shortLine } from "./json-reading.js";
import { AgentMessageRefused, type MessageIntake, type Taken } from "./limits.js";
import {
  cancelled,
  cancelledElicitation,
  type ElicitationResponse,
  type PermissionOutcome,
} from "./questions.js";
import { SessionState } from "./updates.js";

/** Receives what the agent sends, of its session and of others: agents run subagents in sessions of their own. */
export interface MessageReceiver {
  /**
   * @param params of a `session/update`: `sessionId` and `update`.
   * @param size of the message, in characters.
   */
  update(params: JsonObject, size: number): void;
  /** @param withdrawn aborts when the agent withdraws its question. */
  permission(request: JsonObject, size: number, withdrawn: AbortSignal): Promise<PermissionOutcome>;
  elicitation(request: JsonObject, size: number, withdrawn: AbortSignal): Promise<ElicitationResponse>;
  /** See {@link messageStream}. */
  room(): Promise<void> | undefined;
}

/** Messages before the conversation that are named. */
const maxUnasked = 100;

export interface AgentConnectionOptions {
  readonly process: Process;
  readonly title: string;
  readonly intake: MessageIntake;
  readonly log: Log;
}

/** A connection to one agent's process over ACP v1. */
export class AcpConnection {
  readonly #connection: acp.ClientConnection;
  readonly #errorOutput: OutputTail;
  readonly #options: AgentConnectionOptions;
  readonly #input: acp.Stream["writable"];
  readonly state = new SessionState();
  /** The sizes of messages, by their parameters. */
  readonly #sizes = new WeakMap<JsonObject, number>();
  /** What the agent sends until a conversation is opened: requests, notifications, and responses beyond the one that it owes. */
  #unasked: string[] | undefined = [];
  #isInitialized = false;
  #log: Log;
  readonly #noise = new NoiseTail();
  /** Whether it has sent any message of ACP. */
  #speaksAcp = false;
  /** Whether it answers a request that it doesn't know. Undefined until it was tried. */
  #answersUnknown: boolean | undefined;
  #receiver: MessageReceiver | undefined;

  constructor(options: AgentConnectionOptions) {
    this.#options = options;
    const { process, title } = options;
    this.#log = options.log;
    this.#errorOutput = new OutputTail(process.stderr);
    const stream = messageStream({
      stdin: process.stdin,
      stdout: process.stdout,
      intake: options.intake,
      tap: (message, size) => this.#tap(message, size),
      room: () => this.#receiver?.room(),
      onNoise: (line) => {
        this.#noise.add(line);
        this.#log.debug({ agent: title, line: shortLine(line, 200) }, "no ACP on the agent's stdout");
      },
    });
    this.#input = stream.writable;
    this.#connection = acp
      .client({ name: "ambit" })
      // Parsed by hand: the SDK's schema rejects a whole request for one option of an unknown kind.
      .onRequest(
        "session/request_permission",
        (params: unknown) => params,
        ({ params, signal }) => this.#permission(params, signal),
      )
      .onRequest(
        "elicitation/create",
        (params: unknown) => params,
        ({ params, signal }) => this.#elicitation(params, signal),
      )
      .onRequest("*", ({ method }) => {
        throw acp.RequestError.methodNotFound(String(method));
      })
      .onNotification("*", ({ method }) => this.#log.debug({ agent: title, method }, "notification ignored"))
      .connect(stream);
  }

  /** Whether the agent has ended, or its connection was closed. */
  get closed(): boolean {
    return this.#connection.signal.aborted;
  }

  /**
   * What the agent sent before its conversation, besides its answer to `initialize`: names of methods, and `response` for
   * a further one. The first hundred.
   */
  get unasked(): readonly string[] {
    return this.#unasked ?? [];
  }

  /** It belongs to a run from now on, whose log this is. */
  logTo(log: Log): void {
    this.#log = log;
    this.#unasked = undefined;
  }

  /** Whether it has sent any message of ACP. */
  get speaksAcp(): boolean {
    return this.#speaksAcp;
  }

  /** A sentence with the last lines of its stdout that weren't ACP; undefined if there were none. */
  get noise(): string | undefined {
    return this.#noise.sentence;
  }

  /** From now on the agent's messages go to `receiver`; without one they are dropped, except for its session's state. */
  receive(receiver: MessageReceiver | undefined): void {
    this.#receiver = receiver;
  }

  /**
   * @param doing the operation, for error messages: "the prompt".
   * @param cancelled sends `$/cancel_request` when it aborts before the response. The response is still awaited: agents
   * that don't know that notification ignore it.
   * @throws ModelFailed or HarnessFailed
   */
  async request(method: string, params: object, doing: string, cancelled?: AbortSignal): Promise<unknown> {
    const { title } = this.#options;
    const options = cancelled === undefined ? {} : { cancellationSignal: cancelled };
    try {
      return await this.#connection.agent.request<unknown, object>(method, params, options);
    } catch (error) {
      const failure =
        error instanceof acp.RequestError
          ? requestFailure(error, title, doing)
          : await this.#gone(error, doing);
      throw failure instanceof HarnessFailed ? this.#withNoise(failure) : failure;
    }
  }

  /** Settles when the agent has answered a meaningless request: everything that it wrote before has arrived. */
  async roundTrip(): Promise<void> {
    try {
      await this.#connection.agent.request<unknown, object>("_ambit/round_trip", {});
    } catch (error) {
      // The agent answers that it doesn't know the method.
      if (!(error instanceof acp.RequestError)) throw await this.#gone(error, "its session's return");
    }
  }

  /**
   * Waits for a round trip for at most `limitMs`. Never rejects.
   * @returns false if the agent is gone, or doesn't answer requests that it doesn't know: it isn't asked again then.
   */
  async roundTripWithin(limitMs: number): Promise<boolean> {
    if (this.closed || this.#answersUnknown === false) return false;
    const answered = this.roundTrip().then(
      () => {
        this.#answersUnknown = true;
        return true;
      },
      () => false,
    );
    const isAnswered = await resultWithin(answered, limitMs);
    this.#answersUnknown ??= isAnswered === true;
    return isAnswered === true;
  }

  /** Sends without waiting: if the agent is gone, the pending request fails. */
  notify(method: string, params: object): void {
    this.#connection.agent.notify<object>(method, params).catch((error: unknown) => {
      this.#log.debug({ agent: this.#options.title, method, error }, "notification not delivered");
    });
  }

  /** Stops listening and ends the agent's input, which asks most agents to exit. */
  async close(): Promise<void> {
    this.#receiver = undefined;
    this.#connection.close();
    try {
      await this.#input.close();
    } catch (error) {
      this.#log.debug({ agent: this.#options.title, error }, "the agent's input was closed already");
    }
  }

  /** Updates never reach the SDK, which would validate each one completely and drop unknown ones. */
  #tap(message: JsonObject, size: number): boolean {
    this.#speaksAcp = true;
    this.#noteUnasked(message);
    if (isJsonObject(message.params)) this.#sizes.set(message.params, size);
    if (message.method !== "session/update" || "id" in message) return false;
    const { params } = message;
    const to = this.#receiver;
    if (!isJsonObject(params)) return true;
    if (to === undefined) this.state.note(params.update);
    else to.update(params, size);
    return true;
  }

  #noteUnasked({ method }: JsonObject): void {
    if (this.#unasked === undefined || this.#unasked.length === maxUnasked) return;
    if (typeof method === "string") this.#unasked.push(shortLine(method, 100));
    else if (this.#isInitialized) this.#unasked.push("response");
    else this.#isInitialized = true;
  }

  async #gone(reason: unknown, doing: string): Promise<HarnessFailed> {
    const { process, title } = this.#options;
    const log = this.#log;
    const errorOutput = () => this.#errorOutput.text;
    const failure = await agentGone({ process, title, doing, reason, errorOutput });
    log.warn({ agent: title, stderr: errorOutput() }, failure.message);
    return failure;
  }

  /** What a program prints in place of its protocol is often the reason, such as a missing setting. */
  #withNoise(failure: HarnessFailed): HarnessFailed {
    const { noise } = this;
    return noise === undefined
      ? failure
      : new HarnessFailed(`${failure.message} ${noise}`, { cause: failure });
  }

  async #permission(params: unknown, signal: AbortSignal): Promise<{ outcome: PermissionOutcome }> {
    const receiver = this.#answering(params);
    if (receiver === undefined || !isJsonObject(params)) return { outcome: cancelled };
    return { outcome: await receiver.permission(params, this.#sizes.get(params) ?? 0, signal) };
  }

  async #elicitation(params: unknown, signal: AbortSignal): Promise<ElicitationResponse> {
    const receiver = this.#answering(params);
    if (receiver === undefined || !isJsonObject(params)) return cancelledElicitation;
    return await receiver.elicitation(params, this.#sizes.get(params) ?? 0, signal);
  }

  /** Who answers a question of the agent; before its first turn it is refused. */
  #answering(params: unknown): MessageReceiver | undefined {
    if (this.#receiver === undefined || !isJsonObject(params))
      this.#log.warn({ agent: this.#options.title }, "the agent asked before its first turn: refused");
    return this.#receiver;
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
  tap(message: JsonObject, size: number): boolean;
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
  /** The message. Undefined if the line isn't JSON. */
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
function isMessage(value: JsonObject): value is JsonObject & AnyMessage {
  if (value.jsonrpc !== "2.0") return false;
  const { id } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof value.method === "string") return hasId || id === undefined;
  return hasId && ("result" in value || "error" in value);
}

/** Keeps the end of a stream and discards the rest: an agent whose output isn't read blocks on a full pipe. */
export class OutputTail {
  readonly #end: TextEnd;

  /** `limit` in characters. */
  constructor(stream: ReadableStream<Uint8Array>, limit = 8_192) {
    this.#end = new TextEnd(limit);
    this.#drain(stream).catch((error: unknown) =>
      this.#end.push(`\n(its error output could not be read: ${messageOf(error)})`),
    );
  }

  /** A truncated word is left out: the rest of a secret wouldn't be recognised as one. */
  get text(): string {
    return this.#end.words;
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream) this.#end.push(chunk);
  }
}

/** Lines that are kept, and characters of each. */
const [maxLines, maxLength] = [3, 200];

/** The last lines that an agent printed in place of messages. */
export class NoiseTail {
  readonly #lines: string[] = [];

  add(line: string): void {
    const short = shortLine(line, maxLength);
    if (short === "") return;
    // A truncated word is left out: the rest of a secret wouldn't be recognised as one.
    this.#lines.push(short.length > maxLength ? short.replace(/\S*…$/, "…") : short);
    if (this.#lines.length > maxLines) this.#lines.shift();
  }

  /** A sentence that quotes these lines. Undefined if there were none. */
  get sentence(): string | undefined {
    if (this.#lines.length === 0) return undefined;
    return `Its last output that isn't ACP: ${this.#lines.map((line) => JSON.stringify(line)).join(", ")}.`;
  }
}
