import { setImmediate } from "node:timers/promises";
import { type AmbitError, isAmbitError, type RunResult } from "@ambit/core";
import { NotFound, runRequestSchema, validBody } from "@ambit/core/plugin";

/** A request that a door made of Ambit's API. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  /** As JSON; undefined without one. */
  readonly body: unknown;
}

/** A run that a door began. */
export interface ScriptedRun {
  readonly runId: string;
  readonly sessionId: string | undefined;
  /** Resolves when the door has cancelled the run. */
  readonly cancelled: Promise<void>;
}

/** What the API does for a door. */
export interface ApiScript {
  /** The records of each run's log, made as they are read: `messageRecord`, `resultRecord`. Where it throws, the log breaks off. Default: a short answer. */
  readonly log?: (run: ScriptedRun) => AsyncIterable<unknown> | Iterable<unknown>;
  /** What it answers in place of each run. Default: the run begins. */
  readonly refusal?: AmbitError;
}

/** What the agent of every run says, if its script doesn't say otherwise. */
export const answerText = "kit-answer";

export const messageRecord = (text: string) => ({ kind: "event", event: { type: "message", text } });

/** The last record of a log. */
export function resultRecord({ runId, sessionId }: ScriptedRun, more: Partial<RunResult> = {}) {
  const session = sessionId === undefined ? {} : { sessionId };
  const result = { ok: true, runId, ...session, output: answerText, events: [], stopReason: "end_turn" };
  return { kind: "result", result: { ...result, ...more } };
}

function* answer(run: ScriptedRun): Generator<unknown, void, void> {
  yield messageRecord(answerText);
  yield resultRecord(run);
}

/** A run with what ends it. */
interface BegunRun extends ScriptedRun {
  readonly cancel: () => void;
}

/**
 * As much of Ambit's HTTP API as doors need to begin, follow and end runs, without a server. It has no question to answer. It
 * validates a run's request as a server does, and sends logs as NDJSON.
 */
export class ScriptedApi {
  readonly requests: ApiRequest[] = [];
  /** Records that were read of all logs. */
  recordsRead = 0;
  readonly #script: ApiScript;
  readonly #runs = new Map<string, BegunRun>();
  readonly #reading = Promise.withResolvers<void>();
  readonly #left = Promise.withResolvers<void>();
  #isBroken = false;

  constructor(script: ApiScript = {}) {
    this.#script = script;
  }

  /** Resolves when a log is asked for more than its first record. */
  get reading(): Promise<void> {
    return this.#reading.promise;
  }

  /** Resolves when a reader has left a log before its end, or has ended its run. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** The requests of the runs that were begun or refused. */
  get runRequests(): readonly unknown[] {
    return this.requests.filter(({ path }) => beginsRun.has(path)).map(({ body }) => body);
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    const text = await request.text();
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    this.requests.push({ method: request.method, path: url.pathname, body });
    request.signal.throwIfAborted();
    try {
      return this.#respond(request, url, body);
    } catch (error) {
      if (isAmbitError(error)) return refusalBy(error);
      throw error;
    }
  };

  #respond(request: Request, { pathname, searchParams }: URL, body: unknown): Response {
    const [, place = "", id = "", part = ""] = pathname.split("/").map(decodeURIComponent);
    if (request.method === "POST" && beginsRun.has(pathname)) {
      const run = this.#begin(body);
      if (pathname === "/stream") return this.#logOf(run, 0, request);
      return Response.json({ ok: true, runId: run.runId, state: "running" }, { status: 202 });
    }
    if (place === "interactions" && request.method === "GET") return Response.json({ interactions: [] });
    const run =
      place === "sessions"
        ? [...this.#runs.values()].findLast(({ sessionId }) => sessionId === id)
        : this.#runs.get(id);
    if (run === undefined || this.#isBroken) throw new NotFound(`There is no ${pathname}.`);
    if (place === "runs" && part === "events")
      return this.#logOf(run, Number(searchParams.get("after") ?? 0), request);
    if (place === "runs" && part === "cancel" && request.method === "POST") {
      run.cancel();
      this.#left.resolve();
      return Response.json({ ok: true });
    }
    if (request.method === "GET" && part === (place === "sessions" ? "run" : "")) {
      const { runId, sessionId } = run;
      return Response.json({ runId, sessionId, state: "running", harness: "kit", events: 0 });
    }
    throw new NotFound(`There is no ${request.method} ${pathname}.`);
  }

  /** @throws RequestInvalid, the script's refusal */
  #begin(body: unknown): BegunRun {
    if (this.#script.refusal !== undefined) throw this.#script.refusal;
    const { runId = crypto.randomUUID(), sessionId } = validBody(runRequestSchema, body);
    const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>();
    const run = { runId, sessionId: sessionId ?? undefined, cancelled, cancel };
    this.#runs.set(runId, run);
    return run;
  }

  #logOf(run: BegunRun, after: number, request: Request): Response {
    const records = recordsFrom((this.#script.log ?? answer)(run), after);
    let count = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          request.signal.addEventListener("abort", () => {
            this.#left.resolve();
            controller.error(request.signal.reason);
          });
        },
        pull: async (controller) => {
          // It also keeps the request, without which its signal never aborts.
          request.signal.throwIfAborted();
          if (count > 0) this.#reading.resolve();
          // A turn of the event loop each: a reader without limits would keep all else from happening.
          await setImmediate();
          try {
            const { value, done } = await records.next();
            if (done === true) return controller.close();
            count += 1;
            this.recordsRead += 1;
            controller.enqueue(new TextEncoder().encode(`${JSON.stringify(value)}\n`));
          } catch (error) {
            this.#isBroken = true;
            throw error;
          }
        },
        cancel: () => this.#left.resolve(),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  }
}

const beginsRun: ReadonlySet<string> = new Set(["/run", "/stream"]);

async function* recordsFrom(
  records: AsyncIterable<unknown> | Iterable<unknown>,
  after: number,
): AsyncGenerator<unknown, void, void> {
  let position = 0;
  for await (const record of records) {
    if (position >= after) yield record;
    position += 1;
  }
}

/** An error as a server answers it. */
export function refusalBy(error: AmbitError): Response {
  const headers: Record<string, string> =
    "retryAfterMs" in error ? { "retry-after": String(Math.ceil(Number(error.retryAfterMs) / 1_000)) } : {};
  const result = { ok: false, error: error.message, failure: error.toFailure() };
  return Response.json(result, { status: error.status, headers });
}
