import { Agent } from "node:http";
import { Socket } from "node:net";
import { inspect } from "node:util";

/** Milliseconds between two checks. */
const pollMs = 50;

/**
 * For HTTP clients that buffer a platform's whole response: a connection that exceeds the limit is closed. One that
 * was upgraded carries a stream and has no limit.
 */
export class BoundedAgent extends Agent {
  /** @param maxBytes of one response. Default 64 MiB: a list of a thousand containers has a few. */
  constructor(readonly maxBytes = 64 * 1024 * 1024) {
    super();
  }

  /**
   * docker-modem inspects a request's options, of which this is one, to any depth, whether or not it logs them. All open
   * connections would be in that text, and take seconds of the event loop.
   */
  [inspect.custom](): string {
    return "BoundedAgent {}";
  }

  override createConnection(...given: Parameters<Agent["createConnection"]>) {
    const socket = super.createConnection(...given);
    if (!(socket instanceof Socket)) return socket;
    const look = setInterval(() => {
      if (socket.bytesRead > this.maxBytes)
        socket.destroy(new Error(`the response is longer than ${this.maxBytes} bytes`));
    }, pollMs).unref();
    const stop = () => clearInterval(look);
    return socket.once("close", stop).once("agentRemove", stop);
  }
}

/** A request's time limit in milliseconds, or the signal that ends it. */
export function signalWithin(limitMs: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(limitMs);
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

/** The same until the response begins: what follows is a stream that may be long, and silent. */
export async function firstByteWithin<Answer>(
  limitMs: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const [request, limit] = [new AbortController(), signalWithin(limitMs, signal)];
  limit.throwIfAborted();
  const stop = () => request.abort(limit.reason);
  limit.addEventListener("abort", stop, { once: true });
  try {
    return await ask(request.signal);
  } finally {
    limit.removeEventListener("abort", stop);
  }
}

/** Whether a request's own limit ended it. */
export function isLate(error: unknown): boolean {
  const both = [error, error instanceof Error ? error.cause : undefined];
  return both.some((one) => one instanceof DOMException && one.name === "TimeoutError");
}
