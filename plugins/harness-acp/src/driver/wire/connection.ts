import * as acp from "@agentclientprotocol/sdk/unstable";
import type { HarnessFailed, Log, Process } from "@ambit/core/plugin";
import { cancelledElicitation, type ElicitationResponse } from "../calls/elicitation.js";
import { cancelled, type PermissionOutcome } from "../calls/permission-options.js";
import { isRecord, type JsonRecord, shortLine } from "../json-reading.js";
import { agentGone, requestFailure } from "./failures.js";
import { messageStream } from "./message-stream.js";
import { OutputTail } from "./output-tail.js";

/** Where the agent's messages go. It is set for as long as a turn lasts. */
export interface MessageReceiver {
  /** @param size characters of the message. */
  update(update: unknown, size: number): void;
  /** @param withdrawn aborts when the agent takes its question back. */
  permission(request: JsonRecord, size: number, withdrawn: AbortSignal): Promise<PermissionOutcome>;
  elicitation(request: JsonRecord, size: number, withdrawn: AbortSignal): Promise<ElicitationResponse>;
  /** See {@link messageStream}. */
  room(): Promise<void> | undefined;
}

export interface ConnectionOptions {
  readonly process: Process;
  readonly title: string;
  readonly messageLimit: number;
  readonly log: Log;
}

/** One agent's process, spoken to in ACP v1. */
export class AcpConnection {
  readonly #connection: acp.ClientConnection;
  readonly #errorOutput: OutputTail;
  readonly #options: ConnectionOptions;
  readonly #input: acp.Stream["writable"];
  /** Characters of a message, by its parameters. */
  readonly #sizes = new WeakMap<JsonRecord, number>();
  /** Whose updates count, and for whom. */
  #receiver: { readonly sessionId: string; readonly receiver: MessageReceiver } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { process, log, title } = options;
    this.#errorOutput = new OutputTail(process.stderr);
    const stream = messageStream({
      stdin: process.stdin,
      stdout: process.stdout,
      messageLimit: options.messageLimit,
      tap: (message, size) => this.#tap(message, size),
      room: () => this.#receiver?.receiver.room(),
      onNoise: (line) =>
        log.debug({ agent: title, line: shortLine(line, 200) }, "no ACP on the agent's stdout"),
    });
    this.#input = stream.writable;
    this.#connection = acp
      .client({ name: "ambit" })
      // Read by hand: the SDK's schema refuses a whole request for one option of a kind it doesn't know.
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
      .onNotification("*", ({ method }) => log.debug({ agent: title, method }, "notification ignored"))
      .connect(stream);
  }

  /** Whether the agent has gone, or was left. */
  get closed(): boolean {
    return this.#connection.signal.aborted;
  }

  /** From now on this session's messages go to `receiver`; without one they are dropped. */
  receive(sessionId: string, receiver: MessageReceiver | undefined): void {
    this.#receiver = receiver === undefined ? undefined : { sessionId, receiver };
  }

  /**
   * @param doing what fails: "the prompt".
   * @param cancelled sends `$/cancel_request` when it aborts before the answer. The answer is waited for all the same:
   * agents that don't know that notification ignore it.
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

  /** Settles when the agent has answered a question that means nothing: all that it wrote before has arrived. */
  async roundTrip(): Promise<void> {
    try {
      await this.#connection.agent.request<unknown, object>("_ambit/round_trip", {});
    } catch (error) {
      // It doesn't know the method, and says so: that is the answer.
      if (!(error instanceof acp.RequestError)) throw await this.#gone(error, "its session's return");
    }
  }

  /** Sends and forgets: an agent that is gone shows in the request that waits. */
  notify(method: string, params: object): void {
    this.#connection.agent.notify<object>(method, params).catch((error: unknown) => {
      this.#options.log.debug({ agent: this.#options.title, method, error }, "notification not delivered");
    });
  }

  /** Stops listening and ends the agent's input, which asks most agents to leave. */
  async close(): Promise<void> {
    this.#receiver = undefined;
    this.#connection.close();
    try {
      await this.#input.close();
    } catch (error) {
      this.#options.log.debug({ agent: this.#options.title, error }, "the agent's input was closed already");
    }
  }

  /** Updates never reach the SDK, which would check each at length and drop those it doesn't know. */
  #tap(message: JsonRecord, size: number): boolean {
    if (isRecord(message.params)) this.#sizes.set(message.params, size);
    if (message.method !== "session/update" || "id" in message) return false;
    const { params } = message;
    const to = this.#receiver;
    if (to !== undefined && isRecord(params) && params.sessionId === to.sessionId) {
      to.receiver.update(params.update, size);
    }
    return true;
  }

  async #gone(reason: unknown, doing: string): Promise<HarnessFailed> {
    const { process, title, log } = this.#options;
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

  /** Who hears a question of the agent's: nobody outside a turn, or of another session. */
  #asked(params: unknown) {
    const to = this.#receiver;
    if (to === undefined || !isRecord(params) || params.sessionId !== to.sessionId) return undefined;
    return { receiver: to.receiver, params, size: this.#sizes.get(params) ?? 0 };
  }
}
