import * as acp from "@agentclientprotocol/sdk/unstable";
import type { HarnessFailed, Log, Process } from "@ambit/core/plugin";
import { cancelledElicitation, type ElicitationResponse } from "../calls/elicitation.js";
import { cancelled, type PermissionOutcome } from "../calls/permission-options.js";
import { isRecord, type JsonRecord, shortLine } from "../json-reading.js";
import { agentGone, requestFailure } from "./failures.js";
import type { MessageIntake } from "./message-intake.js";
import { messageStream } from "./message-stream.js";
import { OutputTail } from "./output-tail.js";
import { SessionState } from "./session-state.js";

/** Receives the agent's messages during a turn. */
export interface MessageReceiver {
  /** @param size of the message, in characters. */
  update(update: unknown, size: number): void;
  /** @param withdrawn aborts when the agent withdraws its question. */
  permission(request: JsonRecord, size: number, withdrawn: AbortSignal): Promise<PermissionOutcome>;
  elicitation(request: JsonRecord, size: number, withdrawn: AbortSignal): Promise<ElicitationResponse>;
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
  readonly #sizes = new WeakMap<JsonRecord, number>();
  /** Its requests and notifications until a conversation was opened, and responses beyond the one it owed. */
  #unasked: string[] | undefined = [];
  #isInitialized = false;
  #log: Log;
  /** The session whose updates are accepted, and their receiver. */
  #receiver: { readonly sessionId: string; readonly receiver: MessageReceiver } | undefined;

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
      room: () => this.#receiver?.receiver.room(),
      onNoise: (line) =>
        this.#log.debug({ agent: title, line: shortLine(line, 200) }, "no ACP on the agent's stdout"),
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

  /** From now on this session's messages go to `receiver`; without one they are dropped, except for its state. */
  receive(sessionId: string, receiver: MessageReceiver | undefined): void {
    this.#receiver = receiver === undefined ? undefined : { sessionId, receiver };
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
      if (error instanceof acp.RequestError) throw requestFailure(error, title, doing);
      throw await this.#gone(error, doing);
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
  #tap(message: JsonRecord, size: number): boolean {
    this.#noteUnasked(message);
    if (isRecord(message.params)) this.#sizes.set(message.params, size);
    if (message.method !== "session/update" || "id" in message) return false;
    const { params } = message;
    const to = this.#receiver;
    if (!isRecord(params)) return true;
    if (to === undefined) this.state.note(params.update);
    else if (params.sessionId === to.sessionId) to.receiver.update(params.update, size);
    return true;
  }

  #noteUnasked({ method }: JsonRecord): void {
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

  async #permission(params: unknown, signal: AbortSignal): Promise<{ outcome: PermissionOutcome }> {
    const asked = this.#asked(params);
    if (asked === undefined) return { outcome: cancelled };
    return { outcome: await asked.receiver.permission(asked.params, asked.size, signal) };
  }

  async #elicitation(params: unknown, signal: AbortSignal): Promise<ElicitationResponse> {
    const asked = this.#asked(params);
    return asked === undefined
      ? cancelledElicitation
      : await asked.receiver.elicitation(asked.params, asked.size, signal);
  }

  /** The receiver of an agent's question: none outside a turn, or for another session. */
  #asked(params: unknown) {
    const to = this.#receiver;
    if (to === undefined || !isRecord(params) || params.sessionId !== to.sessionId) return undefined;
    return { receiver: to.receiver, params, size: this.#sizes.get(params) ?? 0 };
  }
}
