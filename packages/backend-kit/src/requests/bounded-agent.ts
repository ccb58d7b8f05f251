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
