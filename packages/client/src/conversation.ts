import type { InteractionAnswer, InteractionKind, RunRequest, Schema, StreamRecord } from "./api.js";
import { AmbitClient } from "./client.js";
import { AmbitError } from "./errors.js";
import type { Run } from "./run.js";

export { eventStream } from "./event-stream.js";
export { safeText } from "./safe-text.js";

/** One request to a door, as far as its conversation needs it. */
export interface ConversationCall {
  /** Its signal aborts when the client has left. */
  readonly request: Pick<Request, "url" | "signal">;
  /** The API as this request's caller. */
  readonly fetch: typeof fetch;
}

/** What a protocol calls a chat or a thread: a session, whose newest run answers its newest message. */
export class Conversation {
  readonly #client: AmbitClient;
  readonly sessionId: string;

  constructor(client: AmbitClient, sessionId: string) {
    this.#client = client;
    this.sessionId = sessionId;
  }

  /** The conversation that a request to a door is about. Its `?projectId=` says whose, where a token may act for several projects. */
  static of({ request: { url, signal }, fetch }: ConversationCall, sessionId: string): Conversation {
    // A client that has left needs no connection of its own to the log.
    const fetchWhileRead: typeof fetch = (input, init) => fetch(input, { ...init, signal });
    const projectId = new URL(url).searchParams.get("projectId");
    const project = projectId === null ? {} : { projectId };
    return new Conversation(new AmbitClient({ fetch: fetchWhileRead, ...project }), sessionId);
  }

  /** The questions that are open in any of its runs: their kinds, by their ids. */
  async openQuestions(): Promise<ReadonlyMap<string, InteractionKind>> {
    const kinds = new Map<string, InteractionKind>();
    const open = this.#client.eachInteraction({ sessionId: this.sessionId, state: "open" });
    for await (const { id, kind } of open) kinds.set(id, kind);
    return kinds;
  }

  /** The newest run; undefined where the chat has none, or is another caller's. */
  async newestRun(): Promise<Schema<"RunInfo"> | undefined> {
    try {
      return await this.#client.sessionRun(this.sessionId);
    } catch (error) {
      if (error instanceof AmbitError && error.status === 404) return undefined;
      throw error;
    }
  }

  /**
   * The records of a run of this conversation. They end with its result, failed or not. A file of its outputs has a URL that a
   * browser opens by itself, for a day at most; for a caller that may not read the run's files, it stays closed.
   *
   * @throws AmbitError if the run was refused before it began, or can't be followed to its end
   */
  async *records(run: Run): AsyncGenerator<StreamRecord, void, void> {
    let urls: ReadonlyMap<string, string> | undefined;
    for await (const record of recordsOf(run)) {
      if (record.kind !== "event" || record.event.type !== "file" || record.event.path === undefined) {
        yield record;
        continue;
      }
      const { event } = record;
      urls ??= await fileUrls(this.#client, run.id);
      yield { ...record, event: { ...event, url: urls.get(record.event.path) ?? event.url } };
    }
  }

  /**
   * Begins a run. Its session is this one, whatever the request says.
   *
   * @param runId as `continuedRunId` names the run that continues a message. Default: a new one, of a new message.
   */
  begin(request: RunRequest, runId?: string): Run {
    const id = runId === undefined ? {} : { runId };
    return this.#client.run({ ...request, sessionId: this.sessionId, ...id }, followed);
  }

  /**
   * Answers questions of the newest run.
   *
   * @returns the run, and the ids of the questions that were open: only these were asked, and still need an answer.
   */
  async answer(
    answers: ReadonlyMap<string, InteractionAnswer>,
  ): Promise<{ readonly runId: string; readonly accepted: readonly string[] } | undefined> {
    const run = answers.size === 0 ? undefined : await this.newestRun();
    if (run === undefined) return undefined;
    const accepted: string[] = [];
    for (const [id, answer] of answers) if (await this.#isAccepted(run.runId, id, answer)) accepted.push(id);
    return { runId: run.runId, accepted };
  }

  async #isAccepted(runId: string, id: string, answer: InteractionAnswer): Promise<boolean> {
    try {
      await this.#client.answer(runId, id, answer);
      return true;
    } catch (error) {
      if (error instanceof AmbitError && isNoQuestion.has(error.status)) return false;
      throw error;
    }
  }

  /**
   * The runs of the message that is being written, from its first one to the one that goes on. Undefined while nothing goes on.
   */
  async live(): Promise<readonly Run[] | undefined> {
    const newest = await this.newestRun();
    if (newest === undefined || newest.state === "ended") return undefined;
    return runIdsUntil(newest.runId).map((runId) => this.#client.attach(runId, followed));
  }

  /** Ends the run that goes on. False if none does. */
  async stop(): Promise<boolean> {
    const newest = await this.newestRun();
    if (newest === undefined || newest.state === "ended") return false;
    try {
      await this.#client.cancelRun(newest.runId);
      return true;
    } catch (error) {
      if (error instanceof AmbitError && error.status === 404) return false;
      throw error;
    }
  }
}

/** The most that a server gives: a user may come back to a chat. */
const fileUrlTtlMs = 86_400_000;

/**
 * The URLs of a run's files, by their paths: each opens its file without a header, for a day at most. Empty for a caller that may
 * not read them.
 */
export async function fileUrls(client: AmbitClient, runId: string): Promise<ReadonlyMap<string, string>> {
  try {
    const { files } = await client.files(runId, { urlTtlMs: fileUrlTtlMs });
    return new Map(files.flatMap(({ path, url }) => (url === undefined ? [] : [[path, url]])));
  } catch (error) {
    // The token of a page lacks `read`, or the run was deleted meanwhile.
    if (error instanceof AmbitError && (error.status === 403 || error.status === 404)) return new Map();
    throw error;
  }
}

/** A connection that is cut isn't taken up again: the protocol's client must see it, and has its own way to come back. */
const followed = { reconnectTimeoutMs: 0 };

/** The id names no question of the run, or one that is answered, or one whose time is over. */
const isNoQuestion: ReadonlySet<number | undefined> = new Set([404, 409, 410]);

async function* recordsOf(run: Run): AsyncGenerator<StreamRecord, void, void> {
  try {
    yield* run.records();
    yield { kind: "result", result: await run.result };
  } catch (error) {
    // With a status, the server refused to begin it.
    if (!(error instanceof AmbitError) || error.result === undefined || error.status !== undefined)
      throw error;
    yield { kind: "result", result: { events: [], runId: run.id, ...error.result } };
  }
}

/** A run that continued a message: the id of the first one, and its number. */
const continuedId = /^(.+)\.turn-(\d{1,3})$/;

function partsOf(runId: string): { readonly first: string; readonly turn: number } {
  const [, first = runId, turn = "1"] = continuedId.exec(runId) ?? [];
  return { first, turn: Number(turn) };
}

/** The id of the message that a run writes: of the first run that wrote to it. Pure. */
export function messageIdOf(runId: string): string {
  return partsOf(runId).first;
}

/** The id of the run that continues the message of a run, so that both are known as parts of it. Pure. */
export function continuedRunId(runId: string): string {
  const { first, turn } = partsOf(runId);
  return `${first}.turn-${turn + 1}`;
}

/** The runs that wrote the message, up to this one. Pure. */
function runIdsUntil(runId: string): string[] {
  const { first, turn } = partsOf(runId);
  return [...Array(turn).keys()].map((index) => (index === 0 ? first : `${first}.turn-${index + 1}`));
}
