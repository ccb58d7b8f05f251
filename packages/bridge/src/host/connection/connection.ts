import { randomBytes } from "node:crypto";
import type { Log } from "@ambit/core/plugin";
import { messageOf, SandboxFailed } from "@ambit/core/plugin";
import pRetry, { AbortError } from "p-retry";
import type { BridgeOptions } from "../../options.js";
import type { PipeFormat } from "../../transport/pipe-format.js";
import { FrameMissing, TransportBroken } from "../../transport/transport.js";
import { awaitUnlessAborted } from "../await-unless-aborted.js";
import { bridgeKilled, type FormattedPipe, OpenPipe, takenOver } from "./open-pipe.js";

export interface BridgeConnectionOptions<Written> {
  readonly format: PipeFormat<Written>;
  /** Opens a pipe whose command connects it to the guest daemon. @throws SandboxFailed as the platform */
  openPipe(signal: AbortSignal): Promise<FormattedPipe<Written>>;
  readonly bridge: BridgeOptions;
  /** The key of an earlier connection, to continue with its daemon. Default: a new one. */
  readonly resume?: BridgeLink | undefined;
  /** Increases with each owner of the sandbox: the daemon ignores lower ones. Default 0. */
  readonly fence?: number | undefined;
  readonly log: Log;
  /** Called once: the sandbox's streams are lost. */
  onLost(failure: SandboxFailed): void;
}

/** The key with which another process reaches the same daemon. */
export interface BridgeLink {
  readonly key: string;
  /** Identifies the daemon's process: a different one has lost what this one held. */
  readonly epoch: string;
}

/** Tries of the first pipe. What is missing at the start won't appear later. */
const firstTries = 3;
/** Milliseconds for pipes to close, before the platform ends them with the sandbox. */
const closeMs = 2_000;

/** Runs a transport over consecutive pipes. */
export class BridgeConnection<Written> {
  readonly #options: BridgeConnectionOptions<Written>;
  readonly #key: string;
  readonly #closing = new AbortController();
  #epoch: string | undefined;
  #attempt = 0;
  #isLost = false;
  #current: OpenPipe<Written> | undefined;
  #kept: Promise<void> | undefined;
  /** The next pipe, while the current one is being replaced. */
  #successor: Promise<OpenPipe<Written> | undefined> | undefined;
  readonly #closings = new Set<Promise<void>>();

  constructor(options: BridgeConnectionOptions<Written>) {
    this.#options = options;
    this.#key = options.resume?.key ?? randomBytes(24).toString("base64url");
    this.#epoch = options.resume?.epoch;
  }

  /** Undefined before the first pipe. */
  get link(): BridgeLink | undefined {
    return this.#epoch === undefined ? undefined : { key: this.#key, epoch: this.#epoch };
  }

  /**
   * Settles with the first pipe.
   * @throws SandboxFailed
   */
  async open(signal: AbortSignal): Promise<void> {
    const stop = () => this.#closing.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    try {
      signal.throwIfAborted();
      const first = await pRetry(() => this.#greet(), {
        retries: firstTries - 1,
        minTimeout: 100,
        signal: this.#closing.signal,
      });
      this.#kept = this.#keep(first);
    } catch (error) {
      throw error instanceof SandboxFailed || signal.aborted
        ? error
        : new SandboxFailed(`The bridge can't be started in the sandbox: ${messageOf(error)}`, {
            cause: error,
          });
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Whether a pipe was opened, and none of its successors failed permanently. */
  get isOpen(): boolean {
    return this.#kept !== undefined && !this.#closing.signal.aborted && !this.#isLost;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#options.format.transport.close();
    const pipes = [this.#current?.close(new Error("closed")), this.#kept, ...this.#closings];
    // A pipe that can't be closed in time ends with the sandbox.
    const tooLong = AbortSignal.timeout(closeMs);
    await awaitUnlessAborted(tooLong, Promise.all(pipes)).catch((error: unknown) => {
      if (!tooLong.aborted) throw error;
      this.#options.log.warn({}, `a bridge's pipes weren't closed within ${closeMs} ms`);
    });
  }

  async #keep(first: OpenPipe<Written>): Promise<void> {
    const { bridge, format, log, onLost } = this.#options;
    try {
      for (let pipe = first; ; ) {
        const why = await this.#carry(pipe);
        if (this.#closing.signal.aborted) return;
        log.debug({ why: messageOf(why), attempt: this.#attempt }, "a bridge's pipe ended");
        const successor = await this.#successor;
        this.#successor = undefined;
        pipe =
          successor ??
          (await pRetry(() => this.#greet(), {
            retries: Number.POSITIVE_INFINITY,
            minTimeout: 50,
            maxTimeout: 5_000,
            maxRetryTime: bridge.reconnectTimeoutMs,
            signal: this.#closing.signal,
          }));
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#isLost = true;
      format.transport.close();
      onLost(
        error instanceof SandboxFailed
          ? error
          : new SandboxFailed(`The sandbox can't be reached any more: ${messageOf(error)}`, { cause: error }),
      );
    }
  }

  /** Opens a pipe and waits for the peer's greeting. */
  async #greet(): Promise<OpenPipe<Written>> {
    const { format, bridge, log, fence = 0 } = this.#options;
    const { transport } = format;
    const owner = { key: this.#key, fence };
    const attempt = ++this.#attempt;
    const opened = new OpenPipe(await this.#openPipe(), bridge, log);
    const stop = () => void opened.close(this.#closing.signal.reason);
    this.#closing.signal.addEventListener("abort", stop, { once: true });
    try {
      const { epoch, received } = await opened.greet(owner, attempt, transport.received);
      this.#epoch ??= epoch;
      if (epoch !== this.#epoch) throw bridgeKilled();
      this.#closing.signal.throwIfAborted();
      transport.attach(opened.writer, received);
      this.#current = opened;
      return opened;
    } catch (error) {
      await opened.close(error);
      if (error instanceof TransportBroken) throw new AbortError(brokeProtocol(error));
      throw error instanceof SandboxFailed ? new AbortError(error) : error;
    } finally {
      this.#closing.signal.removeEventListener("abort", stop);
    }
  }

  /** Opens the next pipe while this one is still in use, then ends this one. Undefined: none could be opened now. */
  async #replace(pipe: OpenPipe<Written>): Promise<OpenPipe<Written> | undefined> {
    try {
      const successor = await this.#greet();
      void pipe.close(new Error("it has carried enough for one pipe"));
      return successor;
    } catch (error) {
      this.#options.log.debug({ error }, "a bridge's pipe can't be replaced yet");
      this.#successor = undefined;
      return undefined;
    }
  }

  /** A platform's definite failure ends the tries; one that doesn't respond can't be reached. */
  async #openPipe(): Promise<FormattedPipe<Written>> {
    const { openPipe, bridge, log } = this.#options;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(bridge.heartbeatTimeoutMs)]);
    const closeLate = (pipe: FormattedPipe<Written>) => void new OpenPipe(pipe, bridge, log).close(undefined);
    try {
      return await awaitUnlessAborted(signal, openPipe(signal), closeLate);
    } catch (error) {
      throw error instanceof SandboxFailed ? new AbortError(error) : error;
    }
  }

  /** Resolves with the reason when the pipe has ended. @throws SandboxFailed if it can't be replaced. */
  async #carry(pipe: OpenPipe<Written>): Promise<unknown> {
    const { format, bridge } = this.#options;
    const { transport } = format;
    let enough = bridge.pipeBytes;
    try {
      for await (const event of pipe.events()) {
        if (event.kind === "content") event.accept();
        else if (event.kind === "signal" && event.signal[0] === "ack")
          transport.acknowledged(event.signal[1]);
        else if (event.kind === "signal" && event.signal[0] === "dead") throw bridgeKilled();
        else if (event.kind === "signal" && event.signal[0] === "fenced") throw takenOver();
        if (pipe.carried <= enough) continue;
        enough += bridge.pipeBytes;
        this.#successor ??= this.#replace(pipe);
      }
      return pipe.why;
    } catch (error) {
      if (error instanceof FrameMissing || pipe.why !== undefined) return pipe.why ?? error;
      throw error instanceof SandboxFailed ? error : brokeProtocol(error);
    } finally {
      transport.detach(pipe.writer);
      // The next one needn't wait for the platform to remove this one.
      const closing = pipe.close(undefined).finally(() => this.#closings.delete(closing));
      this.#closings.add(closing);
    }
  }
}

function brokeProtocol(error: unknown): SandboxFailed {
  return new SandboxFailed(`The bridge inside broke its protocol: ${messageOf(error)}`, { cause: error });
}
