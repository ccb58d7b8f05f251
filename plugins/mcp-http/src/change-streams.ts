import { heartbeat } from "./tool-server.js";

/** Streams of one publication at one time: an agent has one, and opens another where it believes the first one lost. */
const maxStreams = 8;

const encoder = new TextEncoder();
const changed = encoder.encode(
  `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })}\n\n`,
);
const alive = encoder.encode(": alive\n\n");

/**
 * Streams on which agents of the protocol's earlier generation hear of changes: they open one by GET. The newer generation
 * subscribes by a request.
 */
export class ChangeStreams {
  readonly #open = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #heartbeat: Disposable;

  constructor(heartbeatMs: number) {
    this.#heartbeat = heartbeat(heartbeatMs, () => this.#send(alive));
  }

  /** A response that stays open until the agent leaves, or `close`. The oldest one makes room. */
  open(): Response {
    const [oldest] = this.#open;
    if (this.#open.size >= maxStreams && oldest !== undefined) this.#end(oldest);
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        this.#open.add(controller);
        controller.enqueue(alive);
      },
      cancel: () => {
        if (own !== undefined) this.#open.delete(own);
      },
    });
    return new Response(stream, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  }

  changed(): void {
    this.#send(changed);
  }

  close(): void {
    this.#heartbeat[Symbol.dispose]();
    for (const stream of [...this.#open]) this.#end(stream);
  }

  /** A reader that takes nothing gets nothing more: the news is the same. */
  #send(message: Uint8Array): void {
    for (const stream of this.#open) if ((stream.desiredSize ?? 0) > -maxUnread) stream.enqueue(message);
  }

  #end(stream: ReadableStreamDefaultController<Uint8Array>): void {
    this.#open.delete(stream);
    stream.close();
  }
}

/** Messages that wait for their reader. */
const maxUnread = 16;
