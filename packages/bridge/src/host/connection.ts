/** The connection to a guest daemon: over pipes that follow each other, or over one for the whole lifetime of a sandbox. */

import { randomBytes } from "node:crypto";
import { type Log, messageOf, SandboxFailed, TextEnd, unlessAborted } from "@ambit/core/plugin";
import pRetry, { AbortError } from "p-retry";
import { protocolVersion } from "../messages.js";
import type {
  BinaryPipe,
  BridgeLink,
  BridgeOptions,
  DirectPipe,
  DirectPlatform,
  Pipe,
} from "../remote-sandbox.js";
import { type ByteSignal, type DirectTransport, preamble } from "../transport/byte-format.js";
import {
  FrameMissing,
  type PipeEvent,
  type PipeFormat,
  type PipeReader,
  type PipeSignal,
  type PipeSink,
  TransportBroken,
} from "../transport/transport.js";

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
    await unlessAborted(tooLong, () => Promise.all(pipes)).catch((error: unknown) => {
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
      return await unlessAborted(signal, () => openPipe(signal), closeLate);
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

/** Characters of unexpected output that are kept to explain why no bridge responded. */
const maxNoiseLength = 500;

/** A runner's credentials for the guest daemon. */
interface BridgeCredentials {
  /** The same for all owners: only they can connect to the daemon. */
  readonly key: string;
  /** Increases with each owner. */
  readonly fence: number;
}

/** A pipe, and what is written to it and read from it. */
interface FormattedPipe<Written> {
  readonly pipe: Pick<Pipe | BinaryPipe, "output" | "close">;
  readonly format: Pick<PipeFormat<Written>, "newReader" | "signal">;
  newWriter(failed: (error: unknown) => void): PipeWriter<Written>;
}

/** One open pipe: frames and signals in both directions, with a heartbeat timeout. */
class OpenPipe<Written> {
  readonly writer: PipeWriter<Written>;
  readonly #pipe: FormattedPipe<Written>["pipe"];
  readonly #format: FormattedPipe<Written>["format"];
  readonly #heartbeatTimeoutMs: number;
  readonly #log: Log;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #events: PipeReader;
  /** What has arrived but isn't read yet, the first of it at `#at`. */
  #waiting: readonly PipeEvent[] = [];
  #at = 0;
  readonly #watch: NodeJS.Timeout;
  #read = 0;
  #lastActivityAt = performance.now();
  readonly #noise = new TextEnd(maxNoiseLength);
  #closed: Promise<void> | undefined;
  #why: unknown;

  constructor(
    { pipe, format, newWriter }: FormattedPipe<Written>,
    { heartbeatTimeoutMs, orphanTimeoutMs }: BridgeOptions,
    log: Log,
  ) {
    this.#pipe = pipe;
    this.#format = format;
    this.#events = format.newReader();
    this.#heartbeatTimeoutMs = heartbeatTimeoutMs;
    this.#log = log;
    this.#reader = pipe.output.getReader();
    this.writer = newWriter((error) => void this.close(error));
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastActivityAt > heartbeatTimeoutMs)
        void this.close(new Error(`nothing was heard for ${heartbeatTimeoutMs} ms`));
      else this.#say(["ping"]);
      // Each side considers the other lost when it is silent for too long.
    }, Math.min(heartbeatTimeoutMs, orphanTimeoutMs) / 3);
    this.#watch.unref();
  }

  /** Why it has ended; undefined while it is open. */
  get why(): unknown {
    return this.#why;
  }

  /** Bytes both ways. */
  get carried(): number {
    return this.#read + this.writer.written;
  }

  /** @throws Error when no bridge answers: the pipe may be mended · SandboxFailed when the bridge is dead */
  async greet(
    { key, fence }: BridgeCredentials,
    attempt: number,
    received: number,
  ): Promise<{ epoch: string; received: number }> {
    this.#say(["hello", protocolVersion, key, attempt, received, fence]);
    // Endless unexpected output isn't a response.
    const tooLong = new Error(`no bridge answered within ${this.#heartbeatTimeoutMs} ms`);
    const limit = setTimeout(() => void this.close(tooLong), this.#heartbeatTimeoutMs);
    try {
      for await (const event of this.events()) {
        if (event.kind !== "signal") continue;
        const { signal } = event;
        if (signal[0] === "dead") throw bridgeKilled();
        if (signal[0] === "fenced") throw takenOver();
        if (signal[0] === "hello" && signal[3] === attempt) return { epoch: signal[2], received: signal[4] };
      }
    } finally {
      clearTimeout(limit);
    }
    const said = this.#noise.text.trim();
    const why = this.#why instanceof Error ? this.#why.message : "its command ended";
    throw new Error(said === "" ? why : `${why}: ${said}`);
  }

  /** What arrives until the pipe ends. Can be left and resumed. @throws TransportBroken */
  async *events(): AsyncGenerator<PipeEvent, void, void> {
    for (;;) {
      for (let event = this.#waiting[this.#at]; event !== undefined; event = this.#waiting[this.#at]) {
        this.#at += 1;
        if (event.kind === "noise") this.#noise.push(event.text);
        yield event;
      }
      const piece = await this.#reader.read().catch((error: unknown) => {
        this.#why ??= error;
        return { done: true, value: undefined } as const;
      });
      if (piece.done) {
        this.#why ??= new Error("The pipe ended");
        return;
      }
      this.#lastActivityAt = performance.now();
      this.#read += piece.value.length;
      this.#waiting = this.#events.push(piece.value);
      this.#at = 0;
    }
  }

  /** Never rejects. */
  close(why: unknown): Promise<void> {
    this.#why ??= why;
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    clearInterval(this.#watch);
    const closing = this.#pipe.close().catch((error: unknown) => {
      this.#log.warn({ error }, "a bridge's pipe couldn't be closed: it ends with the sandbox");
    });
    // A stream that has failed can't be cancelled.
    await Promise.all([this.#reader.cancel().catch(() => undefined), closing]);
  }

  #say(signal: PipeSignal): void {
    this.writer.write(this.#format.signal(signal));
  }
}

function bridgeKilled(): SandboxFailed {
  return new SandboxFailed("The bridge in the sandbox was killed, and what ran there is lost");
}

function takenOver(): SandboxFailed {
  const message = "Another replica has taken over the session's sandbox: send the session's next run there";
  return new SandboxFailed(message, { concerns: "session" });
}

/** Characters in one write of a pipe, which may be a request to a platform's API. */
const maxWriteCharacters = 48 * 1024;
/** Bytes in one write of a binary pipe, for which small pieces are joined. */
const maxWriteBytes = 128 * 1024;

/** Hands to a pipe what a transport sends, one write at a time; what is sent meanwhile is part of the next write. */
abstract class PipeWriter<Written> implements PipeSink<Written> {
  readonly #failed: (error: unknown) => void;
  #waiting: Written[] = [];
  #isWriting = false;
  /** Written so far, in characters or bytes. */
  written = 0;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  protected abstract writeAll(waiting: readonly Written[]): Promise<void>;

  write(written: Written): void {
    this.#waiting.push(written);
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Together with the rest of this turn of the event loop.
    setImmediate(() => {
      this.#drain().catch((error: unknown) => this.#failed(error));
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const all = this.#waiting;
      this.#waiting = [];
      await this.writeAll(all);
    }
    this.#isWriting = false;
  }
}

/** Writes complete lines. */
export class LineWriter extends PipeWriter<string> {
  readonly #pipe: Pipe;

  constructor(pipe: Pipe, failed: (error: unknown) => void) {
    super(failed);
    this.#pipe = pipe;
  }

  protected override async writeAll(waiting: readonly string[]): Promise<void> {
    const all = waiting.join("");
    for (let start = 0; start < all.length; ) {
      const end = cut(all, start);
      await this.#pipe.write(all.slice(start, end));
      this.written += end - start;
      start = end;
    }
  }
}

/** The end of the last line that fits into a write. A line is shorter than a write. */
function cut(all: string, start: number): number {
  if (all.length - start <= maxWriteCharacters) return all.length;
  const end = all.lastIndexOf("\n", start + maxWriteCharacters - 1) + 1;
  return end > start ? end : all.length;
}

/** Writes bytes, after the preamble. */
export class ByteWriter extends PipeWriter<Uint8Array> {
  readonly #pipe: BinaryPipe;
  /** For joined pieces: new memory for each write costs more than the copy. */
  readonly #joined = Buffer.allocUnsafeSlow(maxWriteBytes);

  constructor(pipe: BinaryPipe, failed: (error: unknown) => void) {
    super(failed);
    this.#pipe = pipe;
    this.write(preamble);
  }

  protected override async writeAll(waiting: readonly Uint8Array[]): Promise<void> {
    let joined: Uint8Array[] = [];
    let length = 0;
    for (const bytes of waiting) {
      if (length + bytes.length > maxWriteBytes) {
        await this.#writeOne(joined);
        [joined, length] = [[], 0];
      }
      joined.push(bytes);
      length += bytes.length;
    }
    await this.#writeOne(joined);
  }

  async #writeOne(pieces: readonly Uint8Array[]): Promise<void> {
    const [first, ...others] = pieces;
    if (first === undefined) return;
    const bytes = others.length === 0 ? first : this.#join(pieces);
    await this.#pipe.write(bytes);
    this.written += bytes.length;
  }

  #join(pieces: readonly Uint8Array[]): Uint8Array {
    let length = 0;
    for (const bytes of pieces) {
      this.#joined.set(bytes, length);
      length += bytes.length;
    }
    return this.#joined.subarray(0, length);
  }
}

interface DirectConnectionOptions {
  readonly platform: DirectPlatform;
  readonly argv: readonly [program: string, ...args: string[]];
  /** What the command reads first: the guest daemon. */
  readonly program: Uint8Array;
  readonly transport: DirectTransport;
  readonly bridge: BridgeOptions;
  readonly log: Log;
  /** Called once: the sandbox's streams are lost. */
  onLost(failure: SandboxFailed): void;
}

/** Milliseconds for the output of a command that no longer reads its input. */
const finalOutputMs = 500;
/** Milliseconds for a platform to report why a pipe ended. */
const explainMs = 5_000;

/** One pipe for the whole lifetime of a sandbox. */
export class DirectConnection {
  readonly #options: DirectConnectionOptions;
  #pipe: DirectPipe | undefined;
  #isOpen = false;
  #failure: SandboxFailed | undefined;
  #isClosed = false;
  #lastActivityAt = performance.now();
  #watch: NodeJS.Timeout | undefined;
  #greeted: (version: number) => void = () => undefined;
  /** Output before the greeting, which may say why there is none. */
  #noise = "";

  constructor(options: DirectConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#isOpen && !this.#isClosed;
  }

  /** @throws SandboxFailed when no guest daemon of this version answers. */
  async open(signal: AbortSignal): Promise<void> {
    const { platform, argv, bridge } = this.#options;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(bridge.heartbeatTimeoutMs)]);
    try {
      signal.throwIfAborted();
      const pipe = await unlessAborted(
        limit,
        () => platform.openDirectPipe(argv, limit),
        (late) => void late.close(),
      );
      this.#pipe = pipe;
      const version = await unlessAborted(limit, () => this.#greeting(pipe));
      if (version !== protocolVersion) throw new Error(`it speaks version ${version} of the protocol`);
      // What immediately followed the greeting may have ended it.
      if (this.#failure !== undefined) throw this.#failure;
      this.#isOpen = true;
      this.#watchOver();
    } catch (error) {
      await this.close();
      if (error instanceof SandboxFailed || signal.aborted) throw error;
      const said = this.#noise.trim();
      // Its output may be lost with the pipe.
      const ended = said === "" ? await this.#platformsReason() : undefined;
      const why = messageOf(error) + (said === "" ? "" : `: ${said}`);
      throw (
        ended ?? new SandboxFailed(`The bridge can't be started in the sandbox: ${why}`, { cause: error })
      );
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#options.transport.close();
    const pipe = this.#pipe;
    if (pipe === undefined) return;
    pipe.input.end();
    const tooLong = AbortSignal.timeout(closeMs);
    await unlessAborted(tooLong, () => pipe.close()).catch((error: unknown) => {
      this.#options.log.warn({ error }, "a bridge's pipe couldn't be closed: it ends with the sandbox");
    });
  }

  /** What the guest daemon reports about the pipe. */
  receiveSignal(op: ByteSignal, value: number): void {
    if (op === "hello") this.#greeted(value);
  }

  #greeting(pipe: DirectPipe): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#greeted = resolve;
      const lost = (error?: unknown) => {
        const why = error instanceof Error ? error : new Error("its command ended");
        reject(why);
        this.#lost(why);
      };
      let broken: (() => void) | undefined;
      pipe.output.on("data", (bytes: Buffer) => {
        this.#lastActivityAt = performance.now();
        if (!this.#isOpen) this.#noise = (this.#noise + bytes.toString("latin1")).slice(0, maxNoiseLength);
        if (broken === undefined) {
          try {
            this.#options.transport.accept(bytes);
            return;
          } catch (error) {
            broken = () => {
              reject(error);
              this.#broken(error);
            };
            // A command that couldn't be started may say why in several pieces.
            if (!this.#isOpen) setTimeout(broken, finalOutputMs);
          }
        }
        if (this.#isOpen || this.#noise.length === maxNoiseLength) broken();
      });
      pipe.output.once("end", () => lost());
      pipe.output.once("close", () => lost());
      pipe.output.on("error", lost);
      // Of a command that couldn't be started or ended at once, the output says why.
      pipe.input.on("error", (error) => setTimeout(lost, this.#isOpen ? 0 : finalOutputMs, error));
      if (this.#options.platform.hasProgram !== true) pipe.input.write(this.#options.program);
      this.#options.transport.attach(pipe.input);
      this.#options.transport.signal("hello", protocolVersion);
    });
  }

  #watchOver(): void {
    const { heartbeatTimeoutMs, orphanTimeoutMs } = this.#options.bridge;
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastActivityAt > heartbeatTimeoutMs)
        this.#lost(new Error(`nothing was heard for ${heartbeatTimeoutMs} ms`));
      else this.#options.transport.signal("ping", 0);
      // Each side considers the other lost when it is silent for too long.
    }, Math.min(heartbeatTimeoutMs, orphanTimeoutMs) / 3);
    this.#watch.unref();
  }

  #broken(error: unknown): void {
    this.#end(error instanceof SandboxFailed ? error : brokeProtocol(error));
  }

  #lost(why: Error): void {
    const unknown = new SandboxFailed(`The sandbox can't be reached any more: ${messageOf(why)}`, {
      cause: why,
    });
    this.#end(unknown, async () => (await this.#platformsReason()) ?? unknown);
  }

  /** Why the sandbox ended, if the platform says so in time. */
  async #platformsReason(): Promise<SandboxFailed | undefined> {
    const { platform, log } = this.#options;
    const limit = AbortSignal.timeout(explainMs);
    try {
      return await unlessAborted(limit, async () => await platform.whyLost?.(limit));
    } catch (error) {
      log.warn({ error }, "the platform doesn't say why a sandbox was lost");
      return undefined;
    }
  }

  #end(failure: SandboxFailed, explain = async () => failure): void {
    if (this.#isClosed) return;
    const wasOpen = this.#isOpen;
    this.#failure = failure;
    void this.close();
    if (wasOpen) void explain().then((explained) => this.#options.onLost(explained));
  }
}
