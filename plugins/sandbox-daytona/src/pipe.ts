import { randomUUID } from "node:crypto";
import type { Pipe } from "@ambit/bridge";
import type { Log } from "@ambit/core/plugin";
import { WebSocket } from "ws";
import { ServiceFailure } from "./platform/failure.js";
import { withRetries } from "./platform/retries.js";
import type { Machine } from "./platform/service.js";
import { shellLine } from "./platform/shell-line.js";

/**
 * The official SDK's version, whose protocol Ambit's log client uses. `pipe.test.ts` compares it with the installed
 * one.
 */
const sdkVersion = "0.216.0";

const markers = { stdout: Buffer.from([1, 1, 1]), stderr: Buffer.from([2, 2, 2]) } as const;
type Stream = keyof typeof markers;

interface Labelled {
  readonly stream: Stream;
  readonly bytes: Buffer;
}

/**
 * Splits the platform's log of a command: each line starts with a marker of three bytes that names its stream. Bytes
 * before the first marker belong to no stream and are dropped.
 */
export class Demultiplexer {
  #stream: Stream | undefined;
  #held: Buffer = Buffer.alloc(0);

  *feed(chunk: Uint8Array): Iterable<Labelled> {
    const data = Buffer.concat([this.#held, chunk]);
    let start = 0;
    const next = {
      stdout: data.indexOf(markers.stdout),
      stderr: data.indexOf(markers.stderr),
    };
    while (next.stdout !== -1 || next.stderr !== -1) {
      const stream =
        next.stderr === -1 || (next.stdout !== -1 && next.stdout < next.stderr) ? "stdout" : "stderr";
      yield* this.#piece(data.subarray(start, next[stream]));
      this.#stream = stream;
      start = next[stream] + markers[stream].length;
      next[stream] = data.indexOf(markers[stream], start);
    }
    const end = data.length - beginning(data.subarray(start));
    yield* this.#piece(data.subarray(start, end));
    this.#held = data.subarray(end);
  }

  /** Bytes that were held back, if nothing follows. */
  *end(): Iterable<Labelled> {
    yield* this.#piece(this.#held);
    this.#held = Buffer.alloc(0);
  }

  *#piece(bytes: Buffer): Iterable<Labelled> {
    if (bytes.length > 0 && this.#stream !== undefined) yield { stream: this.#stream, bytes };
  }
}

/** How many bytes at the end may be the beginning of a marker. */
function beginning(data: Buffer): number {
  const last = data.at(-1);
  if (last !== 1 && last !== 2) return 0;
  return data.at(-2) === last ? 2 : 1;
}

interface LogStreamOptions {
  /** URL (`http…`) of the command's log. */
  readonly url: string;
  readonly apiKey: string;
  /** Milliseconds until the connection must be established. */
  readonly connectMs: number;
  /** Text of standard error, in pieces. */
  onStderr(text: string): void;
}

/** One frame of the platform is 1 KB; a larger one than this isn't a log. */
const maxFrameBytes = 8 * 1_024 * 1_024;
/** Bytes that are kept for a slow reader before the platform has to wait. */
const readAhead = 256 * 1_024;

interface LogStream {
  readonly stdout: ReadableStream<Uint8Array>;
  /** Safe to call twice. */
  close(): void;
}

/**
 * Follows a command's log from its first byte. Replaces the SDK's client, which can't be closed or paused, treats a
 * broken connection as the end, and fails on frames of more than about 100 KB.
 */
export function openLogStream(options: LogStreamOptions): LogStream {
  const socket = new WebSocket(options.url.replace(/^http/, "ws"), {
    headers: {
      authorization: `Bearer ${options.apiKey}`,
      // Without one of these the daemon removes the markers, and the streams can't be separated.
      "X-Daytona-Split-Output": "true",
      "X-Daytona-SDK-Version": sdkVersion,
    },
    handshakeTimeout: options.connectMs,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
  });
  socket.binaryType = "nodebuffer";
  const demultiplexer = new Demultiplexer();
  const decoder = new TextDecoder();
  let over = false;

  const stdout = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const pass = (pieces: ReturnType<Demultiplexer["feed"]>) => {
          for (const { stream, bytes } of pieces) {
            if (stream === "stdout") controller.enqueue(bytes);
            else options.onStderr(decoder.decode(bytes, { stream: true }));
          }
        };
        const end = (error?: Error) => {
          if (over) return;
          over = true;
          if (error === undefined) controller.close();
          else controller.error(error);
        };
        socket.on("message", (data) => {
          if (over) return;
          pass(demultiplexer.feed(bytesOf(data)));
          if ((controller.desiredSize ?? 0) <= 0) socket.pause();
        });
        socket.on("error", end);
        socket.on("close", () => {
          if (!over) pass(demultiplexer.end());
          end();
        });
      },
      pull: () => socket.resume(),
      cancel() {
        over = true;
        socket.terminate();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: readAhead }),
  );
  return { stdout, close: () => socket.terminate() };
}

function bytesOf(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Characters of one request: many lines are sent in one request, but none waits for a large one. */
const maxRequestCharacters = 128 * 1_024;

interface Waiting {
  readonly lines: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Sends lines in order, one request at a time; lines that arrive meanwhile are sent with the next request. After a
 * failure nothing more is sent: whether the lines arrived is unknown, and later ones mustn't overtake them.
 */
export class InputQueue {
  #waiting: Waiting[] = [];
  #sending = false;
  #failure: { readonly error: unknown } | undefined;

  /** @param send sends one text; the platform adds a line feed to it. */
  constructor(readonly send: (text: string) => Promise<void>) {}

  /** @param lines complete, each with its line feed. */
  write(lines: string): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lines, resolve, reject });
      if (!this.#sending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0 && this.#failure === undefined) {
      const batch = this.#next();
      try {
        await this.send(
          batch
            .map(({ lines }) => lines)
            .join("")
            .replace(/\n$/, ""),
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        this.#failure = { error };
        for (const { reject } of [...batch, ...this.#waiting]) reject(error);
        this.#waiting = [];
      }
    }
    this.#sending = false;
  }

  #next(): Waiting[] {
    let length = 0;
    const within = this.#waiting.findIndex(({ lines }, index) => {
      length += lines.length;
      return index > 0 && length > maxRequestCharacters;
    });
    return this.#waiting.splice(0, within === -1 ? this.#waiting.length : within);
  }
}

interface SessionPipeOptions {
  readonly machine: Machine;
  readonly argv: readonly [program: string, ...args: string[]];
  readonly apiKey: string;
  readonly connectMs: number;
  readonly log: Log;
}

/** A pipe to a command in a separate session: input by requests, output through the command's log. */
export async function openSessionPipe(options: SessionPipeOptions): Promise<Pipe> {
  const { machine, log } = options;
  const session = `ambit-${randomUUID()}`;
  await machine.startSession(session);
  try {
    const command = await machine.startInSession(session, shellLine(options.argv));
    const stream = openLogStream({
      url: `${machine.toolboxUrl}/process/session/${session}/command/${command}/logs?follow=true`,
      apiKey: options.apiKey,
      connectMs: options.connectMs,
      onStderr: (text) =>
        log.debug({ sandbox: machine.name, text }, "a pipe's command wrote to standard error"),
    });
    const over = new AbortController();
    let hasInput = false;
    const queue = new InputQueue(async (text) => {
      // The platform creates the command's input after its response to the start. Nothing was written then, so it may
      // be sent again. Later, the same failure means that the command has ended.
      await withRetries(
        () => machine.input(session, command, text),
        { retries: 8, limitMs: options.connectMs, signal: over.signal },
        (failure) => !hasInput && failure.status === 500 && /failed to open input pipe/.test(failure.message),
      );
      hasInput = true;
    });
    let closing: Promise<void> | undefined;
    return {
      output: stream.stdout,
      write: (lines) => queue.write(lines),
      close: () => {
        stream.close();
        over.abort();
        closing ??= endSession(machine, session, log);
        return closing;
      },
    };
  } catch (error) {
    await endSession(machine, session, log);
    throw error;
  }
}

/** What can't be ended now ends with the sandbox. */
async function endSession(machine: Machine, session: string, log: Log): Promise<void> {
  try {
    await machine.endSession(session);
  } catch (error) {
    if (error instanceof ServiceFailure && (error.kind === "missing" || error.kind === "gone")) return;
    log.debug({ sandbox: machine.name, session, error }, "a session of a sandbox couldn't be ended");
  }
}
