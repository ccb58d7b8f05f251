import type { IncomingHttpHeaders } from "node:http";
import type { Answer } from "./answer.js";
import type { Operation } from "./routes.js";
import type { ApiName, ToolResult } from "./turn.js";

/** What the server saw of one request and did with it. Fields change until the answer has ended. */
export interface RecordedRequest {
  readonly api: ApiName;
  readonly operation: Operation;
  readonly method: string;
  /** With its query, as it was received. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Every credential the request carried, whichever header or query it came in. */
  readonly credentials: readonly string[];
  /** As JSON; undefined when there was none. */
  body?: unknown;
  /** This and the next four stay empty unless the operation is `generate` and the body was understood. */
  model: string;
  /** Qualified names, in the order offered. */
  toolNames: readonly string[];
  lastUserText: string;
  /** Those since `lastUserText`. */
  toolResults: readonly ToolResult[];
  streamed: boolean;
  /** What the script decided; undefined when it wasn't asked. */
  answer?: Answer;
  /** HTTP status sent; undefined until headers are sent, and always after `hang`. */
  readonly status: number | undefined;
  /** The client left before the answer had ended. */
  aborted: boolean;
  /** The answer has ended, been cut or been left. */
  finished: boolean;
}

type Predicate = (request: RecordedRequest) => boolean;

/** Every request in order of arrival, and a way to wait for one without sleeping. */
export class Recording {
  readonly requests: RecordedRequest[] = [];
  readonly #waiting = new Set<{
    readonly matches: Predicate;
    readonly resolve: (found: RecordedRequest) => void;
  }>();

  add(request: RecordedRequest): void {
    this.requests.push(request);
    this.changed(request);
  }

  /** To be called after every change of a field, or those who wait for it wait on. */
  changed(request: RecordedRequest): void {
    for (const waiter of this.#waiting) {
      if (!waiter.matches(request)) continue;
      this.#waiting.delete(waiter);
      waiter.resolve(request);
    }
  }

  /** Resolves with the first request, past or future, that matches; how long to wait is the caller's. */
  async waitFor(matches: Predicate): Promise<RecordedRequest> {
    const found = this.requests.find(matches);
    if (found !== undefined) return found;
    return new Promise((resolve) => this.#waiting.add({ matches, resolve }));
  }
}

/** Credentials of a request, wherever the four APIs put them. */
export function credentialsOf(headers: IncomingHttpHeaders, query: URLSearchParams): readonly string[] {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? "")?.[1];
  return [bearer, headers["x-api-key"], headers["x-goog-api-key"], query.get("key")].flatMap(
    (value) => value ?? [],
  );
}
