import { randomUUID } from "node:crypto";
import {
  type AgentEvent,
  AmbitClient,
  AmbitError,
  type InteractionAnswer,
  type RunRequest,
  type RunResult,
} from "@ambit/client";
import { fileUrls } from "@ambit/client/conversation";
import { bytesOf, contentOf, type FileContent, fileUri, maxEmbeddedBytes } from "./file-resources.js";
import type { Outcome } from "./outcome.js";
import { type Question, questionOf } from "./questions.js";

/** Who calls: what it may ask of a run, and Ambit's public API as this caller. */
export interface Caller {
  readonly fetch: typeof fetch;
  /** `page`: its token has a template, and its runs bring nothing but messages. */
  readonly kind: "platform" | "page";
  /** Whether URLs of the server open for it. */
  readonly opensUrls: boolean;
}

/** Where a run's log was read to: everything before is known. */
export interface Position {
  readonly runId: string;
  readonly after: number;
}

/** Why the reading of a run's log stopped. */
export type Stop =
  | { readonly kind: "asks"; readonly at: Position; readonly questions: readonly Question[] }
  | {
      readonly kind: "paused";
      readonly at: Position;
      readonly questions: readonly Question[];
      /** Whether an answer waits for the session's next turn. */
      readonly isAnswered: boolean;
      readonly result: RunResult;
    }
  | { readonly kind: "ended"; readonly result: RunResult };

/** A run's state, as a task's handle has it. */
export type RunInfo = Awaited<ReturnType<AmbitClient["runInfo"]>>;

export interface Reading {
  /** Cancels the run. Default: none. */
  readonly cancel?: AbortSignal;
  readonly hear?: (event: AgentEvent) => void;
}

/** Statuses of an answer whose question is over: answered by another, withdrawn, or too late. */
const overStatuses: ReadonlySet<number | undefined> = new Set([404, 409, 410]);

/** Runs of one caller, by the public API: nothing that this caller couldn't do itself. */
export class Runs {
  readonly #client: AmbitClient;
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#client = new AmbitClient({ fetch: caller.fetch });
    this.#caller = caller;
  }

  /** Whether the caller has a token of one session, with the request of its runs. */
  get areOfOneSession(): boolean {
    return this.#caller.kind === "page";
  }

  /** A session keeps what a later call goes on with, so each run has one. */
  async begin(request: RunRequest): Promise<Position> {
    const { sessionId = randomUUID(), messages } = request;
    const messageOnly = { sessionId, ...(messages === undefined ? {} : { messages }) };
    const { runId } = await this.#client.start(
      this.areOfOneSession ? messageOnly : { ...request, ...messageOnly },
    );
    return { runId, after: 0 };
  }

  /** Reads until the run ends, pauses, or asks while its agent is held. @throws AmbitError if the run fails */
  async read({ runId, after }: Position, { cancel, hear }: Reading = {}): Promise<Stop> {
    let position = after;
    const run = this.#client.attach(runId, { after, ...(cancel === undefined ? {} : { signal: cancel }) });
    for await (const event of run) {
      position += 1;
      hear?.(event);
      if (event.type !== "interaction_request" || event.payload?.expiresAt === undefined) continue;
      const questions = await this.openQuestions(runId);
      if (questions.length > 0) return { kind: "asks", at: { runId, after: position }, questions };
    }
    const result = await run.result;
    if (result.stopReason !== "paused") return { kind: "ended", result };
    const questions = await this.openQuestions(runId);
    const { interactions: answered } = await this.#client.interactions({
      runId,
      state: "answered",
      limit: 1,
    });
    const at = { runId, after: position };
    return { kind: "paused", at, questions, isAnswered: answered.length > 0, result };
  }

  async openQuestions(runId: string): Promise<readonly Question[]> {
    const questions: Question[] = [];
    for await (const interaction of this.#client.eachInteraction({ runId, state: "open" }))
      questions.push(questionOf(interaction));
    return questions;
  }

  /** Where each file of an ended run opens without a header, by its path. */
  async fileUrls({ runId, receipt }: RunResult): Promise<ReadonlyMap<string, string>> {
    const { files = [] } = receipt?.outputs ?? {};
    const hasUrls = this.#caller.opensUrls && files.length > 0 && runId !== undefined;
    return hasUrls ? await fileUrls(this.#client, runId) : new Map();
  }

  /** Short texts among a run's files, by their paths, where no URL opens them. Files that can't be read are left out. */
  async embedded({ runId, files = [] }: Outcome): Promise<ReadonlyMap<string, FileContent>> {
    const contents = new Map<string, FileContent>();
    if (this.#caller.opensUrls || runId === undefined) return contents;
    let bytesLeft = maxEmbeddedBytes;
    for (const { path, size } of files) {
      if (size > bytesLeft) continue;
      // A file that can't be read stays a link, and its reader gets the reason.
      const bytes = await this.file(runId, path)
        .then((response) => bytesOf(response, bytesLeft))
        .catch(() => undefined);
      const content = bytes && contentOf(fileUri(runId, path), bytes);
      if (bytes === undefined || content === undefined || !("text" in content)) continue;
      contents.set(path, content);
      bytesLeft -= bytes.length;
    }
    return contents;
  }

  /** A file that left a run's workspace. @throws AmbitError `not_found` for one that this caller doesn't have */
  async file(runId: string, path: string): Promise<Response> {
    return await this.#client.file(runId, path);
  }

  async answer(runId: string, answers: Readonly<Record<string, InteractionAnswer>>): Promise<void> {
    for (const [id, answer] of Object.entries(answers)) {
      try {
        await this.#client.answer(runId, id, answer);
      } catch (error) {
        if (!(error instanceof AmbitError && overStatuses.has(error.status))) throw error;
      }
    }
  }

  async info(runId: string): Promise<RunInfo> {
    return await this.#client.runInfo(runId);
  }

  /** False if the run had ended. @throws AmbitError `not_found` for a run that this caller doesn't have */
  async cancel(runId: string): Promise<boolean> {
    const { state } = await this.info(runId);
    if (state === "ended") return false;
    try {
      await this.#client.cancelRun(runId);
      return true;
    } catch (error) {
      if (error instanceof AmbitError && error.status === 404) return false;
      throw error;
    }
  }
}
