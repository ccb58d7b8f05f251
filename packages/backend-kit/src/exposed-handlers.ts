import type { IncomingMessage, ServerResponse } from "node:http";
import { type Exposure, type FetchHandler, newToken, presentsToken, requireBearer } from "@ambit/core/plugin";
import { getRequestListener } from "@hono/node-server";

/** A handler as Node's HTTP server calls it. */
export function listenerOf(
  handler: FetchHandler,
): (request: IncomingMessage, response: ServerResponse) => void {
  return getRequestListener(handler, { overrideGlobalObjects: false });
}

/**
 * Handlers at one address, distinguished by their tokens, so that one way out of a sandbox also reaches
 * handlers that are added later.
 */
export class ExposedHandlers {
  /** Answers a request of Node's HTTP server. */
  readonly listener = listenerOf((request) => this.#handle(request));
  readonly #handlers = new Map<string, FetchHandler>();

  /** @param url where `listener` is reached from inside the sandbox. */
  add(url: string, handler: FetchHandler): Exposure {
    const token = newToken();
    this.#handlers.set(token, handler);
    return {
      url,
      token,
      close: async () => {
        this.#handlers.delete(token);
      },
    };
  }

  /** From now on every token is refused. */
  clear(): void {
    this.#handlers.clear();
  }

  #handle(request: Request): Response | Promise<Response> {
    for (const [token, handler] of this.#handlers) {
      if (presentsToken(request.headers, token)) return handler(request);
    }
    // With a token that no caller has, so that every refusal has the same wording.
    return requireBearer(newToken(), () => new Response())(request);
  }
}
