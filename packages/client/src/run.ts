import type {
  AgentEvent,
  EventRecord,
  FailedResult,
  InteractionAnswer,
  InteractionRequest,
  RunRequest,
  RunResult,
} from "./api.js";
import { AmbitError, failureOf, isFailedResult } from "./errors.js";
import type { Http } from "./http.js";
import { recordsOf, StreamCut } from "./records.js";

/** How a run's questions are answered. Where `onApproval` or `onInput` throws, the run is cancelled, and fails with that error. */
export interface Answers {
  /** Client tools by their names: each returns the call's output. */
  readonly tools?: Readonly<Record<string, (input: unknown, question: InteractionRequest) => unknown>>;
  /** Decides on a call that needs its user. */
  readonly onApproval?: (question: InteractionRequest) => boolean | Promise<boolean>;
  /** Fills in a form; undefined declines it. */
  readonly onInput?: (question: InteractionRequest) => unknown;
}

export interface RunOptions extends Answers {
  /** Cancels the run. */
  readonly signal?: AbortSignal;
  /** Milliseconds without any progress, after which a run whose connection was cut is given up. Default: 60,000. */
  readonly reconnectTimeoutMs?: number;
  /** Milliseconds without a byte, after which a connection counts as cut. Default: 45,000, three of the server's blank lines. */
  readonly silenceMs?: number;
  /** The request of the next turn, after questions of a paused one were answered. Default: the same without `messages`. */
  readonly continueWith?: (request: RunRequest, paused: RunResult) => RunRequest;
}

/** How long a call waits for an answer of this program before its run pauses, unless the request says otherwise. */
const defaultWaitMs = 600_000;
const defaultReconnectTimeoutMs = 60_000;
const defaultSilenceMs = 45_000;
const firstPauseMs = 100;
const maxPauseMs = 5_000;
/** Turns that answers continue: an agent that asks without end is stopped. */
const maxTurns = 100;

type ProjectQuery = Readonly<Record<"projectId", string | undefined>>;

/** What a run is read from: a new one by its request, or one that there is. */
export type RunSource =
  | { readonly kind: "request"; readonly request: RunRequest }
  | {
      readonly kind: "attached";
      readonly runId: string;
      readonly after: number;
      readonly projectId?: string;
    };

/**
 * A run as it happens: an async iterable of its events, and a promise of its result. Read the events with one
 * `for await`, or with `records()` where their times matter, or only await the result; the events pass then.
 *
 * A connection that is cut is taken up again where it ended: no event is lost, and none comes twice. Leaving the
 * `for await` early doesn't end the run; `cancel()` does.
 */
export class Run implements AsyncIterable<AgentEvent> {
  readonly #http: Http;
  readonly #options: RunOptions;
  readonly #source: RunSource;
  readonly #ended = Promise.withResolvers<RunResult>();
  /** It names the turn whose events are read now. */
  #id: string;
  /** Whether its request may be one that the server has begun already. */
  #mayBeRepeated: boolean;
  #isRead = false;

  constructor(http: Http, source: RunSource, options: RunOptions) {
    this.#http = http;
    this.#options = options;
    this.#source = source.kind === "request" ? { ...source, request: withId(source.request) } : source;
    this.#id = this.#source.kind === "request" ? (this.#source.request.runId ?? "") : this.#source.runId;
    // An id that is made here names no earlier run, and a request that is never sent again needs no look at the store.
    this.#mayBeRepeated =
      options.reconnectTimeoutMs !== 0 || (source.kind === "request" && source.request.runId !== undefined);
    // It also rejects where only the events are read.
    this.#ended.promise.catch(() => undefined);
  }

  /** The run's id; while answers continue a paused run, the id of the latest turn. */
  get id(): string {
    return this.#id;
  }

  /** Rejects with an AmbitError if the run fails, or can't be followed to its end. */
  get result(): Promise<RunResult> {
    // A `for await` that begins now is the reader.
    queueMicrotask(() => {
      if (!this.#isRead) void this.#drain();
    });
    return this.#ended.promise;
  }

  /** Ends the run early. Its result has the `stopReason` `cancelled`. False if it has ended already. */
  async cancel(): Promise<boolean> {
    return await cancelRun(this.#http, this.#id, this.#project);
  }

  /** @throws TypeError the second time: events are read once */
  async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent, void, void> {
    for await (const { event } of this.records()) yield event;
  }

  /**
   * The events with the time at which each happened (`at`, ISO 8601).
   *
   * @throws TypeError the second time: events are read once
   */
  async *records(): AsyncGenerator<EventRecord, void, void> {
    if (this.#isRead) throw new TypeError("the events of this run are read already");
    this.#isRead = true;
    const { signal } = this.#options;
    const abort = () => void this.cancel().catch(() => undefined);
    signal?.addEventListener("abort", abort);
    try {
      signal?.throwIfAborted();
      this.#ended.resolve(yield* this.#turns());
    } catch (error) {
      this.#ended.reject(error);
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      // A reader that leaves early doesn't get the result.
      this.#ended.reject(new TypeError("the events of this run were left before its result"));
    }
  }

  get #project(): ProjectQuery {
    const projectId =
      this.#source.kind === "request" ? this.#source.request.projectId : this.#source.projectId;
    return { projectId: projectId ?? undefined };
  }

  async #drain(): Promise<void> {
    try {
      for await (const _event of this);
    } catch {
      // It is the result's, too.
    }
  }

  /** One turn after the other, as long as what a turn asked is answered here. */
  async *#turns(): AsyncGenerator<EventRecord, RunResult, void> {
    let source = this.#source;
    for (let turn = 1; ; turn += 1) {
      const questions = new Questions(this.#http, this.#options, this.#project);
      const result = yield* this.#turn(source, questions);
      if (isFailedResult(result)) throw failureOf(result);
      const isAnswered = await questions.settle();
      if (result.stopReason !== "paused" || !isAnswered || source.kind !== "request") return result;
      if (turn === maxTurns)
        throw new AmbitError(`the run asked in ${maxTurns} turns without an end`, {
          code: "invalid_response",
          retryable: false,
        });
      source = { kind: "request", request: this.#next(source.request, result) };
      this.#id = source.request.runId ?? "";
    }
  }

  #next(request: RunRequest, paused: RunResult): RunRequest {
    const { messages: _said, ...settings } = request;
    const next = this.#options.continueWith?.(request, paused) ?? settings;
    const { sessionId = next.sessionId } = paused;
    return { ...next, ...(sessionId === undefined ? {} : { sessionId }), runId: crypto.randomUUID() };
  }

  async *#turn(
    source: RunSource,
    questions: Questions,
  ): AsyncGenerator<EventRecord, RunResult | FailedResult, void> {
    const { silenceMs = defaultSilenceMs, reconnectTimeoutMs = defaultReconnectTimeoutMs } = this.#options;
    let count = source.kind === "attached" ? source.after : 0;
    /** Whether the server has begun the run, so that it is followed rather than begun. */
    let isBegun = source.kind === "attached";
    let progressAt = performance.now();
    for (let attempt = 0; ; attempt += 1) {
      try {
        const response =
          isBegun || source.kind === "attached"
            ? await this.#follow(count)
            : await this.#begin(source.request);
        isBegun = true;
        if (response.status === 204) return await this.#stored();
        if (response.body === null) throw new StreamCut("the response has no body");
        for await (const record of recordsOf(response.body, silenceMs)) {
          count += 1;
          attempt = 0;
          if (record.kind === "result") return record.result;
          questions.hear(this.#id, record.event);
          yield record;
          progressAt = performance.now();
        }
        throw new StreamCut("the stream ended before its result");
      } catch (error) {
        const pauseMs = pauseAfter(error, attempt);
        if (pauseMs === undefined || performance.now() + pauseMs - progressAt > reconnectTimeoutMs)
          throw error instanceof StreamCut ? unreachable(error) : error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** The same id begins one run only, so that a request whose answer was lost can be sent again. */
  async #begin(request: RunRequest): Promise<Response> {
    // The request of a page's runs is in its token.
    const body = (await this.#http.isPage())
      ? request
      : { ...defaultsFor(request, this.#options), ...request };
    return await this.#http.send("/stream", {
      method: "POST",
      body,
      accept: "application/x-ndjson",
      headers: this.#mayBeRepeated ? { "idempotency-key": this.#id } : {},
    });
  }

  async #follow(after: number): Promise<Response> {
    return await this.#http.send(`/runs/${encodeURIComponent(this.#id)}/events`, {
      accept: "application/x-ndjson",
      query: { ...this.#project, after },
    });
  }

  async #stored(): Promise<RunResult | FailedResult> {
    const { result } = await this.#http.json<{ result?: unknown }>(`/runs/${encodeURIComponent(this.#id)}`, {
      query: this.#project,
    });
    if (isResult(result)) return result;
    throw new AmbitError("the run has ended, and its result isn't there", {
      code: "invalid_response",
      retryable: false,
    });
  }
}

async function cancelRun(http: Http, runId: string, query: ProjectQuery): Promise<boolean> {
  try {
    await http.send(`/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST", query });
    return true;
  } catch (error) {
    if (error instanceof AmbitError && error.status === 404) return false;
    throw error;
  }
}

const isResult = (value: unknown): value is RunResult | FailedResult =>
  isFailedResult(value) ||
  (typeof value === "object" && value !== null && "ok" in value && value.ok === true);

/** The request with an id to follow its run by. */
function withId(request: RunRequest): RunRequest {
  return { ...request, runId: request.runId ?? crypto.randomUUID() };
}

/** What the client adds to a request that doesn't say otherwise: what resuming and answering need. */
function defaultsFor({ sessionId }: RunRequest, { tools, onApproval, onInput }: Answers): RunRequest {
  const answers = tools !== undefined || onApproval !== undefined || onInput !== undefined;
  return {
    // The default of a run in a session.
    ...((sessionId ?? "") === "" ? { onDisconnect: "continue" as const } : {}),
    ...(answers ? { interactions: { waitMs: defaultWaitMs } } : {}),
  };
}

/** Milliseconds before the next attempt; undefined if there is none. */
function pauseAfter(error: unknown, attempt: number): number | undefined {
  const backoffMs = Math.min(firstPauseMs * 2 ** attempt, maxPauseMs);
  if (error instanceof StreamCut) return backoffMs;
  // A failed run's own error has no status, and is no reason to begin another one.
  const isTransient =
    error instanceof AmbitError &&
    error.retryable &&
    (error.code === "unreachable" || isTransientStatus(error));
  return isTransient ? Math.max(backoffMs, error.retryAfterMs ?? 0) : undefined;
}

const isTransientStatus = ({ status = 0 }: AmbitError) => status === 429 || status >= 500;

function unreachable(cause: StreamCut): AmbitError {
  return new AmbitError(`the run can't be followed: ${cause.message}`, {
    code: "unreachable",
    retryable: true,
    cause,
  });
}

/** The questions of one turn, and the answers that are under way. */
class Questions {
  readonly #http: Http;
  readonly #answers: Answers;
  readonly #query: ProjectQuery;
  readonly #pending = new Map<string, Promise<void>>();
  #unanswered = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(http: Http, answers: Answers, query: ProjectQuery) {
    this.#http = http;
    this.#answers = answers;
    this.#query = query;
  }

  hear(runId: string, event: AgentEvent): void {
    if (event.type !== "interaction_request" || this.#pending.has(event.id)) return;
    const answering = this.#answerTo(event);
    if (answering === undefined) {
      this.#unanswered += 1;
      return;
    }
    const sent = answering.then((answer) => this.#send(runId, event.id, answer));
    this.#pending.set(
      event.id,
      sent.catch(async (error: unknown) => {
        this.#failure ??= { error };
        await cancelRun(this.#http, runId, this.#query).catch(() => false);
      }),
    );
  }

  /**
   * Waits for the answers. Resolves with whether everything that was asked has one.
   *
   * @throws what an answering function threw
   */
  async settle(): Promise<boolean> {
    await Promise.all(this.#pending.values());
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#unanswered === 0;
  }

  #answerTo(question: InteractionRequest): Promise<InteractionAnswer> | undefined {
    const { tools, onApproval, onInput } = this.#answers;
    const { toolName = "", input } = question.payload ?? {};
    switch (question.kind) {
      case "user_approval":
        return onApproval && Promise.resolve(onApproval(question)).then((approved) => ({ approved }));
      case "client_tool": {
        const tool = tools?.[toolName];
        return tool && runTool(() => tool(input, question));
      }
      case "user_input":
        return (
          onInput &&
          Promise.resolve(onInput(question)).then((output) =>
            output === undefined ? { output: "declined", isError: true } : { output },
          )
        );
    }
  }

  async #send(runId: string, id: string, answer: InteractionAnswer): Promise<void> {
    const path = `/runs/${encodeURIComponent(runId)}/interactions/${encodeURIComponent(id)}`;
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.#http.send(path, { method: "POST", body: answer, query: this.#query });
        return;
      } catch (error) {
        if (error instanceof AmbitError && isOverStatus.has(error.status)) return;
        const pauseMs = attempt < maxAnswerAttempts ? pauseAfter(error, attempt) : undefined;
        if (pauseMs === undefined) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
}

const maxAnswerAttempts = 10;
/** The question is over: another user answered it, or the run went on or ended without an answer. */
const isOverStatus: ReadonlySet<number | undefined> = new Set([404, 409, 410]);

/** A client tool that fails tells the model so. */
async function runTool(call: () => unknown): Promise<InteractionAnswer> {
  try {
    return { output: (await call()) ?? null };
  } catch (error) {
    return { output: error instanceof Error ? error.message : String(error), isError: true };
  }
}
