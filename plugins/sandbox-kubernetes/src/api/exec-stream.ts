import type { IncomingMessage } from "node:http";
import { SandboxFailed, TextEnd } from "@ambit/core/plugin";
import WebSocket, { type ClientOptions } from "ws";
import { z } from "zod";
import type { ApiServer } from "./server.js";
import { apiErrorOf, bodyOf } from "./server.js";

/** v5 tells a command that its input has ended; v4 doesn't, and nothing here depends on it. */
const protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const channels = { input: 0, output: 1, errors: 2, status: 3, close: 255 } as const;

/** One write of the bridge's, so that it isn't cut into a frame and a remainder of some bytes. */
const maxFrameBytes = 128 * 1024;
/** Output that waits for its reader; beyond, the connection isn't read. */
const maxWaitingBytes = 256 * 1024;
/** Characters of standard error that are kept, and of the status. */
const maxErrorCharacters = 2_000;
const maxStatusBytes = 64 * 1024;
/** No frame of a well-behaved server is longer. */
const maxIncomingBytes = 4 * 1024 * 1024;
const closeTimeoutMs = 2_000;

/** How a command ended; `reason` is the server's word for a failure that isn't the command's. */
export interface CommandEnd {
  /** Undefined: it didn't run to its end. */
  readonly code: number | undefined;
  readonly reason: string;
  readonly message: string;
}

const commandStatus = z.object({
  status: z.string().optional(),
  reason: z.string().catch(""),
  message: z.string().catch(""),
  details: z
    .object({
      causes: z.array(z.object({ reason: z.string().catch(""), message: z.string().catch("") })).catch([]),
    })
    .catch({ causes: [] }),
});

/** Of a `Status` on the stream. Pure. */
export function endOf(status: unknown): CommandEnd {
  const { status: word, reason, message, details } = commandStatus.parse(status);
  if (word === "Success") return { code: 0, reason, message };
  const code = details.causes.find((cause) => cause.reason === "ExitCode")?.message;
  return { code: code === undefined ? undefined : Number(code), reason, message };
}

export interface ExecTarget {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** A command in a container, and its standard streams, with back-pressure in both directions. */
export class ExecStream {
  /** Ends with the command, and errors if the connection is lost before. */
  readonly output: ReadableStream<Uint8Array>;
  /** Settles when the command has ended. Rejects if that can't be known: the connection was lost. */
  readonly end: Promise<CommandEnd>;
  readonly #socket: WebSocket;
  readonly #errors = new TextEnd(maxErrorCharacters);
  #frame: Buffer | undefined;
  #isV5 = false;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#isV5 = socket.protocol === protocols[0];
    const { promise, resolve, reject } = Promise.withResolvers<CommandEnd>();
    this.end = promise;
    // The reader of the output gets the failure too.
    promise.catch(() => undefined);
    let ended: CommandEnd | undefined;
    let isWanted = true;
    this.output = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          socket.on("message", (data: Buffer) => {
            const [channel] = data;
            const content = data.subarray(1);
            if (channel === channels.output && content.length > 0) {
              if (!isWanted) return;
              controller.enqueue(content);
              if ((controller.desiredSize ?? 0) <= 0) socket.pause();
            } else if (channel === channels.errors) {
              this.#errors.push(content);
            } else if (channel === channels.status && content.length > 0) {
              ended = readEnd(content);
              resolve(ended);
            }
          });
          socket.once("close", (code: number) => {
            if (ended !== undefined) {
              close(() => controller.close());
              return;
            }
            const lost = new Error(`the connection to the pod was lost (${code})`);
            reject(lost);
            close(() => controller.error(lost));
          });
        },
        pull: () => socket.resume(),
        cancel: () => {
          isWanted = false;
          this.close();
        },
      },
      { highWaterMark: maxWaitingBytes, size: (piece) => piece.length },
    );
    socket.on("error", () => undefined);
  }

  /**
   * Starts a command. It is visible in the API server's audit log.
   *
   * @throws ApiError for a refusal; Error if the server can't be reached; the signal's reason
   */
  static async open(
    server: ApiServer,
    { namespace, pod, container }: ExecTarget,
    argv: readonly string[],
    signal: AbortSignal,
  ): Promise<ExecStream> {
    const url = new URL(`api/v1/namespaces/${namespace}/pods/${pod}/exec`, server.url);
    url.protocol = url.protocol === "http:" ? "ws:" : "wss:";
    url.searchParams.set("container", container);
    for (const word of argv) url.searchParams.append("command", word);
    for (const name of ["stdin", "stdout", "stderr"]) url.searchParams.set(name, "true");
    const credentials = await server.credentials();
    signal.throwIfAborted();
    // A connection that becomes a stream isn't returned to the agent's others.
    const options: ClientOptions = {
      ...credentials,
      perMessageDeflate: false,
      maxPayload: maxIncomingBytes,
      // Closing is our own matter: see `close`.
      followRedirects: false,
      // A mask protects proxies that read the frames, which none can inside TLS. Masking costs as much as encrypting.
      ...(url.protocol === "wss:" ? { generateMask: noMask } : {}),
    };
    const socket = new WebSocket(url, protocols, options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    socket.once("open", () => resolve());
    socket.once("error", reject);
    socket.once("unexpected-response", (_request: unknown, response: IncomingMessage) => {
      bodyOf(response, maxStatusBytes).then(
        (body) => reject(apiErrorOf(response.statusCode ?? 0, body)),
        (error: unknown) => reject(error),
      );
    });
    // Frames may follow the handshake in the same packet: there is no listener yet.
    socket.once("upgrade", () => socket.pause());
    try {
      await promise;
      if (!protocols.includes(socket.protocol))
        throw new SandboxFailed(
          `The API server speaks none of ${protocols.join(", ")}: use Kubernetes 1.30 or newer`,
        );
      const stream = new ExecStream(socket);
      socket.resume();
      return stream;
    } catch (error) {
      socket.on("error", () => undefined);
      socket.terminate();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** The last of what the command wrote to standard error. */
  get errors(): string {
    return this.#errors.text.trim();
  }

  /** Settles when the kernel has taken it. Rejects if the connection is lost. */
  async write(bytes: Uint8Array): Promise<void> {
    const sent: Promise<void>[] = [];
    for (let start = 0; start < bytes.length; start += maxFrameBytes)
      sent.push(this.#sendInput(bytes.subarray(start, start + maxFrameBytes)));
    await Promise.all(sent);
  }

  /** In memory that the next write uses again, unless it comes before this one has ended. */
  async #sendInput(bytes: Uint8Array): Promise<void> {
    const memory = this.#frame ?? Buffer.allocUnsafeSlow(1 + maxFrameBytes);
    this.#frame = undefined;
    memory[0] = channels.input;
    memory.set(bytes, 1);
    await this.#send(memory.subarray(0, 1 + bytes.length));
    this.#frame = memory;
  }

  /** Ends the command's input, where the server can. */
  async endInput(): Promise<void> {
    if (this.#isV5) await this.#send(Buffer.of(channels.close, channels.input));
  }

  /** Ends the connection, and with it the command's input. Safe to call twice. */
  close(): void {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.resume();
    this.#socket.close();
    setTimeout(() => this.#socket.terminate(), closeTimeoutMs).unref();
  }

  #send(frame: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(frame, { binary: true }, (error) =>
        error === undefined || error === null ? resolve() : reject(error),
      );
    });
  }
}

function noMask(mask: Buffer): void {
  mask.fill(0);
}

function readEnd(content: Buffer): CommandEnd {
  try {
    return endOf(JSON.parse(content.toString("utf8")));
  } catch {
    return { code: undefined, reason: "", message: content.toString("utf8").slice(0, maxErrorCharacters) };
  }
}

/** The reader may have cancelled it. */
function close(action: () => void): void {
  try {
    action();
  } catch {
    // It is closed already.
  }
}
