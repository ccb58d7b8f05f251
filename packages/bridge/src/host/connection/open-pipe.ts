import type { Log } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { protocolVersion } from "../../messages.js";
import type { BridgeOptions } from "../../options.js";
import type { BinaryPipe, Pipe } from "../../platform.js";
import type { PipeSignal } from "../../transport/frame.js";
import type { PipeEvent, PipeFormat, PipeReader } from "../../transport/pipe-format.js";
import type { PipeWriter } from "./pipe-writer.js";

/** Characters of unexpected output that are kept to explain why no bridge responded. */
const maxNoiseLength = 500;

/** A runner's credentials for the guest daemon. */
export interface BridgeCredentials {
  /** The same for all owners: only they can connect to the daemon. */
  readonly key: string;
  /** Increases with each owner. */
  readonly fence: number;
}

/** A pipe, and what is written to it and read from it. */
export interface FormattedPipe<Written> {
  readonly pipe: Pick<Pipe | BinaryPipe, "output" | "close">;
  readonly format: Pick<PipeFormat<Written>, "newReader" | "signal">;
  newWriter(failed: (error: unknown) => void): PipeWriter<Written>;
}

/** One open pipe: frames and signals in both directions, with a heartbeat timeout. */
export class OpenPipe<Written> {
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
  #lastActivityAt = Date.now();
  #noise = "";
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
      if (Date.now() - this.#lastActivityAt > heartbeatTimeoutMs)
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
    const said = this.#noise.trim();
    const why = this.#why instanceof Error ? this.#why.message : "its command ended";
    throw new Error(said === "" ? why : `${why}: ${said}`);
  }

  /** What arrives until the pipe ends. Can be left and resumed. @throws TransportBroken */
  async *events(): AsyncGenerator<PipeEvent, void, void> {
    for (;;) {
      for (let event = this.#waiting[this.#at]; event !== undefined; event = this.#waiting[this.#at]) {
        this.#at += 1;
        if (event.kind === "noise") this.#noise = `${this.#noise}${event.text}`.slice(-maxNoiseLength);
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
      this.#lastActivityAt = Date.now();
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

export function bridgeKilled(): SandboxFailed {
  return new SandboxFailed("The bridge in the sandbox was killed, and what ran there is lost");
}

export function takenOver(): SandboxFailed {
  const message = "Another replica has taken over the session's sandbox: send the session's next run there";
  return new SandboxFailed(message, { concerns: "session" });
}
