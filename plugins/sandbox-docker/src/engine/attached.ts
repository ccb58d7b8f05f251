import { Duplex, Readable } from "node:stream";
import type { DirectPipe } from "@ambit/bridge";
import type { Engine } from "./engine.js";

const headLength = 8;
const standardError = 2;
const none = Buffer.alloc(0);

/**
 * Extracts a command's output from the engine's frames: eight bytes (stream, length) before each piece. What it writes
 * to standard error counts only until it prints anything, as the reason why it didn't start.
 */
class Payloads {
  #head: Buffer = none;
  #remaining = 0;
  #isError = false;
  #hasPrinted = false;

  /** The payloads in one chunk, as views of it. */
  of(chunk: Buffer): readonly Buffer[] {
    const found: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#remaining === 0) {
        const end = at + headLength - this.#head.length;
        // Nearly always whole.
        const part = chunk.subarray(at, end);
        this.#head = this.#head.length === 0 ? part : Buffer.concat([this.#head, part]);
        at = end;
        if (this.#head.length < headLength) break;
        this.#isError = this.#head[0] === standardError;
        this.#remaining = this.#head.readUInt32BE(4);
        this.#head = none;
        continue;
      }
      const piece = chunk.subarray(at, at + this.#remaining);
      at += piece.length;
      this.#remaining -= piece.length;
      if (!this.#isError) this.#hasPrinted = true;
      if (!this.#isError || !this.#hasPrinted) found.push(piece);
    }
    return found;
  }
}

/**
 * Attaches to all streams of a container's first command, also before it starts. dockerode's own `attach` sends its options as a
 * body too, which an engine or a proxy may take for standard input.
 */
export function attachTo(engine: Engine, id: string, abortSignal: AbortSignal): Promise<Duplex> {
  const request = {
    method: "POST",
    path: `/containers/${id}/attach?`,
    options: { stream: true, stdin: true, stdout: true, stderr: true },
    file: Buffer.alloc(0),
    hijack: true,
    isStream: true,
    abortSignal,
    statusCodes: { 101: true, 400: "bad parameter", 404: "no such container", 500: "server error" },
  };
  return new Promise((resolve, reject) => {
    engine.modem.dial(request, (error, stream) =>
      stream instanceof Duplex
        ? resolve(stream)
        : reject(error ?? new Error("the engine attached no stream")),
    );
  });
}

/** A command's output, from the engine's frames. */
export async function* payloadsOf(frames: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  const payloads = new Payloads();
  for await (const chunk of frames) yield* payloads.of(chunk);
}

/**
 * A stream that the engine attached to a command, as the bridge takes it. It ends with the command and can't be
 * replaced.
 */
export function directPipeOf(stream: Duplex): DirectPipe {
  const payloads = new Payloads();
  const output = new Readable({
    read: () => void stream.resume(),
    // Errors of both directions are the stream's.
    destroy: (error, done) => {
      stream.destroy();
      done(error);
    },
  });
  stream.on("data", (chunk: Buffer) => {
    let isWanted = true;
    for (const piece of payloads.of(chunk)) isWanted = output.push(piece);
    if (!isWanted) stream.pause();
  });
  // Whoever reads it gets the error, also if that comes before the reader.
  output.on("error", () => undefined);
  let hasEnded = false;
  stream.once("end", () => {
    hasEnded = true;
    output.push(null);
  });
  stream.on("error", (error) => output.destroy(error));
  // After its end, what arrived can still be read.
  stream.once("close", () => hasEnded || output.destroy());
  return { output, input: stream, close: async () => void stream.destroy() };
}
