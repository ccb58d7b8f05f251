import { type Scope, unlessAborted } from "@ambit/core/plugin";
import type { Client, Transport } from "@modelcontextprotocol/client";
import { AnswerLost, failureOf, isLostSession, NotSent } from "./failure.js";

import type { MessageGuard } from "./message-guard.js";

/** One way to a server: a process of its own, or a session over HTTP. */
export interface Channel {
  readonly transport: Transport;
  readonly guard: MessageGuard;
  /** Whether the server has ended: it takes no further request. */
  hasEnded(): boolean;
  /** How the server ended, as in " (exit code 1)", and what it wrote at last. Both may be empty. */
  ending(): Promise<{ readonly how: string; readonly output: string }>;
}

/** A channel after its handshake. */
export interface Connection extends Channel {
  readonly client: Client;
  /** Requests that wait for their answers. */
  openRequests: number;
  /** Another one has taken its place: it is closed after the last of its requests. */
  isReplaced: boolean;
  /** It has answered no request yet: its end counts as a failed attempt to reach the server. */
  isTrial: boolean;
}

/** Milliseconds between two attempts to reach a server again. */
const pauseMs = { min: 1_000, max: 60_000 };

/** Pure. @param failures one after another, at least one. */
export function pauseAfter(failures: number): number {
  return Math.min(pauseMs.min * 2 ** (failures - 1), pauseMs.max);
}

/**
 * The connection to one server. Where it was lost, the next request opens it again, for all that wait. A request is
 * repeated, once, only if the server's answer shows that it wasn't executed.
 */
export class Connections {
  readonly #all = new Set<Connection>();
  #current: Promise<Connection> | undefined;
  /** Of the last attempt to open it again. */
  #failure: ReopenFailure = neverFailed;

  constructor(
    private readonly openChannel: () => Promise<Channel>,
    private readonly newClient: () => Client,
    private readonly scope: Scope,
    /** Called with each connection after its handshake. */
    private readonly onOpened: (connection: Connection) => void = () => {},
  ) {
    scope.defer(async () => {
      await Promise.all([...this.#all].map((connection) => this.#close(connection)));
    });
  }

  /**
   * The result of a request on the current connection.
   *
   * @param signal ends the wait for a connection, but not its opening, for which others may wait.
   * @throws NotSent; AnswerLost; what the request throws
   */
  async request<Result>(
    signal: AbortSignal,
    send: (connection: Connection) => Promise<Result>,
  ): Promise<Result> {
    const connection = await this.#available(signal);
    try {
      return await this.#send(connection, send);
    } catch (error) {
      if (!isLostSession(error)) throw error;
      await this.#replace(connection);
      return await this.#send(await this.#available(signal), send);
    }
  }

  /** A new connection. @throws the reason, with what the server wrote */
  async open(): Promise<Connection> {
    const { signal } = this.scope;
    // After that, nothing deferred would be closed any more.
    signal.throwIfAborted();
    const channel = await this.openChannel();
    const connection = {
      ...channel,
      client: this.newClient(),
      openRequests: 0,
      isReplaced: false,
      isTrial: true,
    };
    this.#all.add(connection);
    try {
      signal.throwIfAborted();
      await connection.client.connect(channel.transport, { signal });
      this.#current = Promise.resolve(connection);
      this.onOpened(connection);
      return connection;
    } catch (error) {
      await this.#closeEarly(connection);
      throw await withEnding(error, connection);
    }
  }

  async #available(signal: AbortSignal): Promise<Connection> {
    const current = await this.#reached(signal);
    if (!current.hasEnded()) return current;
    await this.#replace(current);
    const next = await this.#reached(signal);
    if (!next.hasEnded()) return next;
    await this.#replace(next);
    throw this.#failed(await withEnding(new NotSent("ended as soon as it had started"), next));
  }

  async #reached(signal: AbortSignal): Promise<Connection> {
    try {
      return await unlessAborted(signal, () => this.#reach());
    } catch (error) {
      throw signal.aborted ? new NotSent("could not be reached in time") : error;
    }
  }

  #reach(): Promise<Connection> {
    if (this.#current !== undefined) return this.#current;
    const waitMs = this.#failure.retryAtMs - performance.now();
    if (waitMs > 0) return Promise.reject(this.#notReached(waitMs));
    const opening = this.open().then(
      (connection) => {
        // The tools were listed when the run began.
        connection.guard.listed();
        return connection;
      },
      (error: unknown) => {
        this.#current = undefined;
        throw this.#failed(error);
      },
    );
    this.#current = opening;
    return opening;
  }

  #failed(error: unknown): NotSent {
    const count = this.#failure.count + 1;
    const { cause, output } = failureOf(error);
    this.#failure = { cause, output, count, retryAtMs: performance.now() + pauseAfter(count) };
    return this.#notReached(0);
  }

  #notReached(waitMs: number): NotSent {
    const { cause, output, count } = this.#failure;
    const attempts = count === 1 ? "" : ` in ${count} attempts`;
    const next = waitMs > 0 ? `; the next attempt comes in ${Math.ceil(waitMs / 1_000)} s` : "";
    return new NotSent(`was lost, and couldn't be reached again${attempts}${next}: it ${cause}`, output);
  }

  async #send<Result>(
    connection: Connection,
    send: (connection: Connection) => Promise<Result>,
  ): Promise<Result> {
    connection.openRequests += 1;
    try {
      const result = await send(connection);
      connection.isTrial = false;
      this.#failure = neverFailed;
      return result;
    } catch (error) {
      if (!connection.hasEnded()) throw error;
      const lost = await withEnding(error, connection);
      // Otherwise a server that ends with each first request would be started as often as it is called.
      if (connection.isTrial) this.#failed(lost);
      connection.isTrial = false;
      throw lost;
    } finally {
      connection.openRequests -= 1;
      await this.#closeUnused(connection);
    }
  }

  /** The next request opens another one, unless one has taken its place already. */
  async #replace(connection: Connection): Promise<void> {
    if (connection.isReplaced) return;
    connection.isReplaced = true;
    this.#current = undefined;
    await this.#closeUnused(connection);
  }

  async #closeUnused(connection: Connection): Promise<void> {
    if (connection.isReplaced && connection.openRequests === 0) await this.#closeEarly(connection);
  }

  /** The end of the scope tries again what fails here, and reports it. */
  async #closeEarly(connection: Connection): Promise<void> {
    await this.#close(connection).catch(() => {});
  }

  async #close(connection: Connection): Promise<void> {
    await connection.client.close();
    // A client that isn't connected yet doesn't have it.
    await connection.transport.close();
    this.#all.delete(connection);
  }
}

interface ReopenFailure {
  readonly cause: string;
  readonly output: string;
  /** In a row. */
  readonly count: number;
  readonly retryAtMs: number;
}

const neverFailed: ReopenFailure = { cause: "", output: "", count: 0, retryAtMs: 0 };

/** The error, with what is known of the server's end. */
async function withEnding(error: unknown, { guard, ending }: Channel): Promise<unknown> {
  const { how, output } = await ending();
  const { cause, effect } = failureOf(error);
  const message = `${guard.refusal?.message ?? cause}${how}`;
  if (message === cause && output === "") return error;
  const Lost = effect === "none" ? NotSent : AnswerLost;
  return new Lost(message, output, { cause: error });
}
