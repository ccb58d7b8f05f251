import type { IncomingMessage, ServerResponse } from "node:http";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The value of a `:name` in the route's path. Empty where the route has no such name. */
  path(name: string): string;
  readonly query: URLSearchParams;
}

export type Handler = (exchange: Exchange) => Promise<void> | void;

interface Route {
  readonly method: string;
  readonly segments: readonly string[];
  readonly handler: Handler;
}

/** Finds the handler of a method and path. A `:name` matches one segment; the first route that fits wins. */
export class Routes {
  readonly #routes: Route[] = [];

  on(method: string, path: string, handler: Handler): this {
    this.#routes.push({ method, segments: path.split("/"), handler });
    return this;
  }

  /** Undefined if no route matches. */
  find(method: string, url: URL): { handler: Handler; path: (name: string) => string } | undefined {
    const segments = url.pathname.split("/");
    for (const route of this.#routes) {
      if (route.method !== method || route.segments.length !== segments.length) continue;
      const values = new Map<string, string>();
      const fits = route.segments.every((expected, index) => {
        const actual = segments[index] ?? "";
        if (!expected.startsWith(":")) return expected === actual;
        values.set(expected.slice(1), decodeURIComponent(actual));
        return actual !== "";
      });
      if (fits) return { handler: route.handler, path: (name) => values.get(name) ?? "" };
    }
    return undefined;
  }
}
