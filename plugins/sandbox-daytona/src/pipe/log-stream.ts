import { WebSocket } from "ws";
import { sdkVersion } from "../platform/sdk-version.js";
import { Demultiplexer } from "./demultiplexer.js";

export interface LogStreamOptions {
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

export interface LogStream {
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
