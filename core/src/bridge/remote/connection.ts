import { randomBytes } from "node:crypto";
import pRetry, { AbortError } from "p-retry";
import { SandboxFailed } from "../../errors.js";
import type { Log } from "../../plugin/index.js";
import type { Link } from "../link/link.js";
import { FrameMissing } from "../link/link.js";
import type { BridgeOptions } from "../options.js";
import type { RemotePlatform } from "../platform.js";
import { bridgeKilled, OpenPipe } from "./open-pipe.js";

export interface ConnectionOptions {
  readonly platform: RemotePlatform;
  readonly argv: readonly [program: string, ...args: string[]];
  readonly link: Link;
  readonly bridge: BridgeOptions;
  readonly log: Log;
  /** Once: nothing brings the sandbox's streams back. */
  onLost(failure: SandboxFailed): void;
}

/** Tries of the first pipe: what isn't there at the start won't come. */
const firstTries = 3;

/** Keeps a link going over one pipe after the other. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #key = randomBytes(24).toString("base64url");
  readonly #closing = new AbortController();
  #epoch: string | undefined;
  #attempt = 0;
  #isLost = false;
  #current: OpenPipe | undefined;
  #kept: Promise<void> | undefined;
  readonly #closings = new Set<Promise<void>>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
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

  /** Whether a pipe came to be, and none of its successors failed for good. */
  get isOpen(): boolean {
    return this.#kept !== undefined && !this.#closing.signal.aborted && !this.#isLost;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#current?.close(new Error("closed"));
    await this.#kept;
    await Promise.all(this.#closings);
  }

  async #keep(first: OpenPipe): Promise<void> {
    const { bridge, link, log, onLost } = this.#options;
    try {
      for (let pipe = first; ; ) {
        const why = await this.#carry(pipe);
        if (this.#closing.signal.aborted) return;
        log.debug({ why: messageOf(why), attempt: this.#attempt }, "a bridge's pipe ended: opening another");
        pipe = await pRetry(() => this.#greet(), {
          retries: Number.POSITIVE_INFINITY,
          minTimeout: 50,
          maxTimeout: 5_000,
          maxRetryTime: bridge.outageMs,
          signal: this.#closing.signal,
        });
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#isLost = true;
      link.close();
      onLost(
        error instanceof SandboxFailed
          ? error
          : new SandboxFailed(`The sandbox can't be reached any more: ${messageOf(error)}`, { cause: error }),
      );
    }
  }

  /** Opens a pipe and hears the other half's greeting. */
  async #greet(): Promise<OpenPipe> {
    const { platform, argv, link, bridge } = this.#options;
    const attempt = ++this.#attempt;
    const pipe = await open(() => platform.openPipe(argv, this.#closing.signal));
    const opened = new OpenPipe(pipe, bridge.silenceMs);
    try {
      const { epoch, received } = await opened.greet(this.#key, attempt, link.received);
      this.#epoch ??= epoch;
      if (epoch !== this.#epoch) throw bridgeKilled();
      this.#closing.signal.throwIfAborted();
      link.attach(opened.writer, received);
      this.#current = opened;
      return opened;
    } catch (error) {
      await opened.close(error);
      if (error instanceof FrameMissing || !(error instanceof SandboxFailed)) throw error;
      throw new AbortError(error);
    }
  }

  /** Until the pipe is gone; why it is. @throws SandboxFailed when that can't be mended. */
  async #carry(pipe: OpenPipe): Promise<unknown> {
    const { link, bridge } = this.#options;
    try {
      for await (const { line, length } of pipe.lines()) {
        if (line.kind === "frame") link.accept(line, length);
        else if (line.kind === "signal" && line.signal[0] === "ack") link.acknowledged(line.signal[1]);
        else if (line.kind === "signal" && line.signal[0] === "dead") throw bridgeKilled();
        if (pipe.carried > bridge.pipeBytes) return "it has carried enough for one pipe";
      }
      return pipe.why;
    } catch (error) {
      if (error instanceof FrameMissing || pipe.why !== undefined) return pipe.why ?? error;
      throw error instanceof SandboxFailed
        ? error
        : new SandboxFailed(`The bridge inside broke its protocol: ${messageOf(error)}`, { cause: error });
    } finally {
      link.detach(pipe.writer);
      // The next one needn't wait for a platform to clear this one away.
      const closing = pipe.close(undefined).finally(() => this.#closings.delete(closing));
      this.#closings.add(closing);
    }
  }
}

/** A platform's own verdict ends the tries. */
async function open<Value>(opening: () => Promise<Value>): Promise<Value> {
  try {
    return await opening();
  } catch (error) {
    throw error instanceof SandboxFailed ? new AbortError(error) : error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
