import type { IncomingHttpHeaders } from "node:http";
import type { Answer } from "./answer.js";
import type { Operation } from "./routes.js";
import type { ApiName, ToolResult } from "./turn.js";

/** One request and its response. Fields change until the response has ended. */
export interface RecordedRequest {
  readonly api: ApiName;
  readonly operation: Operation;
  readonly method: string;
  /** With its query, as it was received. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Every credential of the request, from any header or the query. */
  readonly credentials: readonly string[];
  /** As JSON; undefined when there was none. */
  body?: unknown;
  /** This and the next four are empty unless the operation is `generate` and the body is valid. */
  model: string;
  /** Qualified names, in the order offered. */
  toolNames: readonly string[];
  lastUserText: string;
  /** Those since `lastUserText`. */
  toolResults: readonly ToolResult[];
  streamed: boolean;
  /** The script's decision; undefined if it wasn't called. */
  answer?: Answer;
  /** HTTP status sent; undefined until headers are sent, and always after `hang`. */
  readonly status: number | undefined;
  /** Whether the client disconnected before the response had ended. */
  aborted: boolean;
  /** Whether the response has ended, was cut, or the client disconnected. */
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

  /** Call it after every change of a field, which may end a `waitFor`. */
  changed(request: RecordedRequest): void {
    for (const waiter of this.#waiting) {
      if (!waiter.matches(request)) continue;
      this.#waiting.delete(waiter);
      waiter.resolve(request);
    }
  }

  /** Resolves with the first request, past or future, that matches. Has no time limit of its own. */
  async waitFor(matches: Predicate): Promise<RecordedRequest> {
    const found = this.requests.find(matches);
    if (found !== undefined) return found;
    return new Promise((resolve) => this.#waiting.add({ matches, resolve }));
  }
}

/** Credentials of a request, at all places where the four APIs put them. */
export function credentialsOf(headers: IncomingHttpHeaders, query: URLSearchParams): readonly string[] {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? "")?.[1];
  return [bearer, headers["x-api-key"], headers["x-goog-api-key"], query.get("key")].flatMap(
    (value) => value ?? [],
  );
}
