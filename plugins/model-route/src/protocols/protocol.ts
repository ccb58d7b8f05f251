import type { Issue, ModelUse } from "@ambit/core/plugin";
import type { ConnectionGuard } from "@ambit/egress/client";

/** Where and how a route may connect to a URL. */
export type GuardOf = (url: URL) => ConnectionGuard;

/** The operation of one request, from its method, path and query. */
export interface ModelOperation {
  /** A run pays for `generate`. */
  readonly kind: "generate" | "count-tokens" | "list";
  /** Canonical: composed of validated parts, never the agent's own text. */
  readonly path: string;
  /** With `?`, or empty. */
  readonly query: string;
  /** The model, if the path names it. Otherwise the body does. */
  readonly model?: string;
}

/** Why a request isn't carried. */
export interface RefusedOperation {
  readonly status: number;
  /** Completes "POST /x is refused: …". */
  readonly reason: string;
}

export interface ModelRequestLine {
  readonly method: string;
  /** Normalised: no `.` or `..` segments. */
  readonly pathname: string;
  readonly search: URLSearchParams;
}

/** The provider's count for one request so far. */
export interface Counted {
  readonly input: number;
  readonly cached: number;
  readonly cacheWritten: number;
  readonly output: number;
  /** The part of `output` that is reasoning. */
  readonly reasoning: number;
}

/**
 * How far an answer has come. `open`: it has begun. `whole`: the model says that it is finished; `max_tokens`: at the limit of
 * its length. `failed`: the provider says that it won't be finished.
 */
export type Finish = "open" | "whole" | "max_tokens" | "failed";

/** A credential for a request; requested again each time, since it may expire. */
export interface Authorization {
  /** Headers to set. `request`: the data to sign, for an API with signatures. */
  headers(request: SignedRequest): Promise<Readonly<Record<string, string>>>;
  /** The provider answered 401 to these headers: the next request needs others. */
  refused?(headers: Readonly<Record<string, string>>): void;
}

export interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** One provider's API. */
export interface Protocol {
  /** The request's operation. Pure. */
  read(line: ModelRequestLine, use: ModelUse): ModelOperation | RefusedOperation;
  /** Headers of the agent that are passed on, in lower case, in addition to those of every API. */
  readonly requestHeaders: readonly string[];
  /** Paths of the usage in the response, or in each event of a stream. */
  readonly usagePaths: readonly string[];
  /** Reads one of them: `before` is the count until then. Pure. */
  count(before: Counted, path: string, value: unknown): Counted;
  /** Paths in the response, or in each event of a stream, that say whether the answer is finished. */
  readonly finishPaths: readonly string[];
  /** Reads one of them, or of `usagePaths`; undefined for a value that says nothing. Pure. */
  finish(path: string, value: unknown): Finish | undefined;
  /** A stream's last line, which ends an answer whose events don't have `finishPaths` at all. */
  readonly lastLine?: RegExp;
  /** What finishes an answer to a request with this path, where some servers never say it. Pure. */
  readonly maySkip?: (path: string) => string | undefined;
  /** Problems of the request's credentials or endpoint. Pure. */
  issues(use: ModelUse): readonly Issue[];
  /**
   * `undefined` for an endpoint that needs no credential.
   * @param guardOf how it may connect to a URL of its own.
   */
  authorization(use: ModelUse, guardOf: GuardOf): Authorization | undefined;
  /** Further headers that the API needs. */
  readonly headers?: (use: ModelUse) => Readonly<Record<string, string>>;
}

export const nothingCounted: Counted = { input: 0, cached: 0, cacheWritten: 0, output: 0, reasoning: 0 };

export function isRefusal(read: ModelOperation | RefusedOperation): read is RefusedOperation {
  return "reason" in read;
}

export const unknownCall: RefusedOperation = { status: 404, reason: "it isn't a supported call of this API" };

/** A non-negative whole number at a key of an unknown value; 0 for anything else. */
export function countAt(value: unknown, ...keys: readonly string[]): number {
  let inner: unknown = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null) return 0;
    inner = Object.entries(inner).find(([name]) => name === key)?.[1];
  }
  return typeof inner === "number" && Number.isSafeInteger(inner) && inner > 0 ? inner : 0;
}

/** The same headers for every request. */
export function fixedHeaders(headers: Readonly<Record<string, string>>): Authorization {
  return { headers: async () => headers };
}

/** The known part of the query: anything else refuses the request. */
export function queryOf(
  search: URLSearchParams,
  known: Readonly<Record<string, RegExp>>,
): string | RefusedOperation {
  const pairs: string[] = [];
  for (const [name, value] of search) {
    const form = Object.hasOwn(known, name) ? known[name] : undefined;
    if (form === undefined || !form.test(value)) {
      return { status: 400, reason: "its query has an unsupported parameter" };
    }
    pairs.push(`${name}=${value}`);
  }
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** A reason for the end, which is null until there is one. Pure. */
export function finishOf(reason: unknown, limits: readonly string[]): Finish | undefined {
  if (reason === null) return "open";
  if (typeof reason !== "string" || reason === "") return undefined;
  return limits.includes(reason) ? "max_tokens" : "whole";
}
