import { WebSocket } from "ws";

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
