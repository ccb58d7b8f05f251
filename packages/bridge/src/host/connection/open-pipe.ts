import type { Log } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { protocolVersion } from "../../messages.js";
import type { BridgeOptions } from "../../options.js";
import type { Pipe } from "../../platform.js";
import { type Line, type PipeSignal, readLine, signalLine } from "../../transport/frame.js";
import { Lines } from "../../transport/lines.js";
import { maxLineLength } from "../../transport/payload.js";
import { PipeWriter } from "./pipe-writer.js";

/** Characters of unexpected output that are kept to explain why no bridge responded. */
const maxNoiseLength = 500;

/** A runner's credentials for the guest daemon. */
export interface BridgeCredentials {
  /** The same for all owners: only they can connect to the daemon. */
  readonly key: string;
  /** Increases with each owner. */
  readonly fence: number;
}

interface Arrived {
  readonly line: Line;
  /** Characters. */
  readonly length: number;
}

/** One open pipe: lines in both directions, with a heartbeat timeout. */
export class OpenPipe {
  readonly writer: PipeWriter;
  readonly #pipe: Pipe;
  readonly #heartbeatTimeoutMs: number;
  readonly #log: Log;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #lines = new Lines(maxLineLength);
  /** Lines that have arrived but aren't read yet, the first of them at `#at`. */
  #waiting: readonly string[] = [];
  #at = 0;
  readonly #watch: NodeJS.Timeout;
  #read = 0;
  #lastActivityAt = Date.now();
  #noise = "";
  #closed: Promise<void> | undefined;
  #why: unknown;

  constructor(pipe: Pipe, { heartbeatTimeoutMs, orphanTimeoutMs }: BridgeOptions, log: Log) {
    this.#pipe = pipe;
    this.#heartbeatTimeoutMs = heartbeatTimeoutMs;
    this.#log = log;
    this.#reader = pipe.output.getReader();
    this.writer = new PipeWriter(pipe, (error) => void this.close(error));
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
      for await (const { line } of this.lines()) {
        if (line.kind !== "signal") continue;
        const { signal } = line;
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

  /** The lines until the pipe ends. Can be left and resumed. */
  async *lines(): AsyncGenerator<Arrived, void, void> {
    for (;;) {
      for (let text = this.#waiting[this.#at]; text !== undefined; text = this.#waiting[this.#at]) {
        this.#at += 1;
        const line = readLine("inside", text);
        if (line.kind === "noise") this.#noise = `${this.#noise}${text}\n`.slice(-maxNoiseLength);
        yield { line, length: text.length };
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
      this.#waiting = this.#lines.push(piece.value);
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
    this.writer.write(signalLine("runner", signal));
  }
}

export function bridgeKilled(): SandboxFailed {
  return new SandboxFailed("The bridge in the sandbox was killed, and what ran there is lost");
}

export function takenOver(): SandboxFailed {
  const message = "Another replica has taken over the session's sandbox: send the session's next run there";
  return new SandboxFailed(message, { concerns: "session" });
}
