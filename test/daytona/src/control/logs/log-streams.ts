import type { IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { ApiError, notFound } from "../../http/api-error.js";
import { forwardUpgrade } from "../toolbox/raw-proxy.js";
import { askToolbox, type ToolboxTarget } from "../toolbox/toolbox-client.js";
import { marksStreams, WithoutMarkers } from "./stream-markers.js";

/** The daemon reads a log in pieces of this size, each of which becomes a frame. */
const frameBytes = 1024;
/** Bytes of frames that wait in memory; beyond that, the daemon waits. */
const maxBufferedBytes = 256 * 1024;

/** Log streams over WebSockets: each connection begins at the log's first byte. */
export class LogStreams {
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #open = new Set<WebSocket>();
  readonly #raw = new Set<() => void>();

  /** @param isRaw whether the daemon is Daytona's own, which supports WebSocket itself. */
  constructor(private readonly isRaw: boolean) {}

  /** Throws before the upgrade if there is no such command. */
  async upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    target: ToolboxTarget,
  ): Promise<void> {
    if (this.isRaw) {
      const end = forwardUpgrade(request, socket, head, target);
      this.#raw.add(end);
      socket.once("close", () => this.#raw.delete(end));
      return;
    }
    const url = new URL(target.path, "http://toolbox");
    if (!url.pathname.endsWith("/logs")) throw notFound("404 page not found");
    const path = url.pathname.replace(/\/logs$/, "/follow");
    const log = await askToolbox(target.socketPath, "GET", path);
    if (log.statusCode !== 200) {
      log.resume();
      throw new ApiError(log.statusCode ?? 502, "command not found");
    }
    const output = marksStreams(request.headers) ? log : log.pipe(new WithoutMarkers());
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      this.#open.add(webSocket);
      webSocket.once("close", () => {
        this.#open.delete(webSocket);
        log.destroy();
      });
      webSocket.on("error", () => webSocket.terminate());
      send(output, webSocket);
    });
    // A pipe doesn't report that its sandbox ended.
    if (output !== log) log.once("error", (error) => output.destroy(error));
  }

  /** Like a lost connection, without a close frame. */
  cut(): number {
    const open = [...this.#open];
    for (const webSocket of open) webSocket.terminate();
    const raw = [...this.#raw];
    for (const end of raw) end();
    return open.length + raw.length;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

function send(log: Readable, webSocket: WebSocket): void {
  log.on("data", (chunk: Buffer) => {
    for (let start = 0; start < chunk.length; start += frameBytes) {
      webSocket.send(chunk.subarray(start, start + frameBytes), { binary: true }, () => {
        if (log.isPaused() && webSocket.bufferedAmount < maxBufferedBytes) log.resume();
      });
    }
    if (webSocket.bufferedAmount >= maxBufferedBytes) log.pause();
  });
  log.once("end", () => webSocket.close(1000));
  // The sandbox ended: there is no close frame then.
  log.once("error", () => webSocket.terminate());
}
