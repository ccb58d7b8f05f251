/** What the runner gives to a plugin's work: a scope with its tools, a log, and the trace that the work is part of. */

import { setMaxListeners } from "node:events";

/** Owns lifetimes: what is opened in it is closed with it, in reverse order. */
export interface Scope {
  /** Aborts when the scope begins to close. Its reason says why: cancelled, timed out, failed. */
  readonly signal: AbortSignal;
  /**
   * Runs `close` once when the scope closes; an error is logged, and the others still run. Call it right after opening:
   * `scope.defer(() => sandbox.close())`.
   */
  defer(close: () => void | Promise<void>): void;
}

/** No run has nearly as many listeners. 0 (no limit) would break clients that raise the current limit. */
const maxListeners = 10_000;

/** An abort controller for a plugin's work. Its signal may have many listeners (one per open call) without a warning. */
export function newPluginAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(maxListeners, controller.signal);
  return controller;
}

/**
 * The step's result. Rejects with the signal's reason as soon as the signal aborts, or immediately if it has aborted.
 *
 * @param closeLate closes a result that arrives after the abort. Default: the step itself closes what it opens then.
 */
export async function unlessAborted<Result>(
  signal: AbortSignal,
  step: () => Promise<Result>,
  closeLate: (result: Result) => void = () => undefined,
): Promise<Result> {
  signal.throwIfAborted();
  let follow = () => {};
  try {
    return await new Promise<Result>((resolve, reject) => {
      let isLate = false;
      follow = () => {
        isLate = true;
        reject(signal.reason);
      };
      signal.addEventListener("abort", follow, { once: true });
      // One decision for each result: it is either returned or closed.
      step().then((result) => (isLate ? closeLate(result) : resolve(result)), reject);
    });
  } finally {
    signal.removeEventListener("abort", follow);
  }
}

/** The result of a promise that settles within so many milliseconds, otherwise undefined. Rejects as the promise does. */
export async function resultWithin<Result>(
  promise: Promise<Result>,
  milliseconds: number,
): Promise<Result | undefined> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    limit = setTimeout(resolve, Math.max(0, milliseconds), undefined);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(limit);
  }
}

/** Creates a value at its first use and keeps it. A failed attempt is forgotten: the next use tries again. */
export function lazy<Value, Arguments extends readonly unknown[] = []>(
  make: (...values: Arguments) => Promise<Value>,
): (...values: Arguments) => Promise<Value> {
  let made: Promise<Value> | undefined;
  return (...values) => {
    made ??= make(...values).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** The runner's structured log. Fields are redacted before they are written, but never pass a secret. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** A span of a caller, as a `traceparent` of W3C Trace Context names it. */
export interface RemoteSpan {
  /** Hexadecimal, like the span's id. */
  readonly traceId: string;
  readonly spanId: string;
  /** The lowest bit is set if the caller samples the trace. */
  readonly flags: number;
}

/** A caller's span with its `tracestate`, which holds the tracing vendor's own data. */
export interface CallersSpan extends RemoteSpan {
  readonly tracestate?: string;
}

/** The fields that pass on a trace: headers of an HTTP request, or keys of `_meta` in MCP and ACP. Empty without a trace. */
export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
}
