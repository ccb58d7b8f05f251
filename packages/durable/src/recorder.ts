import { setImmediate as nextTurn } from "node:timers/promises";
import { type AmbitError, AtCapacity, messageOf, RunCancelled, StoreFailed, toAmbitError } from "@ambit/core";
import {
  type AgentEvent,
  type AgentEventOf,
  type EventRecord,
  isAbout,
  outcomeOf,
  projectOf,
  type RunRequest,
  type RunResult,
} from "@ambit/core/contract";
import { type Log, pieceEnd } from "@ambit/core/plugin";
import type { RecordGroup, RunLog } from "./run-log.js";
import type { Sealing } from "./sealing.js";
import type { NewDelivery, NewInteraction, NewRun, RunEnd, StoredRecovery } from "./store.js";
import { aboutEnd, aboutExpiry, aboutQuestion, type MessageSource, sealedWebhook } from "./webhooks.js";
import type { RunSummary } from "./wire.js";

/** What a recorded run knows of its right to act: another replica may take it over. */
export interface LeasedHold {
  /** Increases with each owner of the run. */
  readonly fence: number;
  /** Whether the run is certainly still this replica's. */
  readonly isCurrent: boolean;
  /** Resolves once it is: immediately, or after the lease's next renewal. @throws the signal's reason */
  confirmed(signal: AbortSignal): Promise<void>;
}

/** A run as it is recorded. The runner's `Run` is one. */
export interface RecordedRun {
  /** The id by which the caller knows the run. */
  readonly id: string;
  /** Its id in the store, where runs of all callers are. */
  readonly key: string;
  readonly request: RunRequest;
  readonly plan: {
    readonly harness: { readonly actor: { readonly id: string } };
    readonly sandbox: { readonly actor: { readonly name: string } };
  };
  /** What is stored for those who end it, if this process dies, or continue it. */
  readonly recovery: {
    readonly trace?: string;
    /** What each observer needs, by the observer's name. */
    readonly recoveries: Readonly<Record<string, string>>;
  };
  /** The request without its secrets. Undefined where it is too large to be kept. */
  readonly requestCopy: unknown;
  /** Names the run, and its trace, in each line. */
  readonly log: Log;
  /** Resolves when everything the run opened is closed, with its failure if there was one. */
  readonly ended: Promise<AmbitError | undefined>;
  /** Its first events, which are there before it starts. Taken here, they aren't yielded again. */
  announced(): readonly EventRecord[];
  /** Binds the run to a hold, before it starts: the run acts only while the hold is current. */
  holdBy(hold: LeasedHold): void;
  /**
   * Starts it: yields its events in groups, then its one result. After a group of at least `events`, the next one gathers
   * for `timeoutMs`, or until it has `characters`. What waits is bounded: then the run waits.
   */
  parts(gathering: {
    readonly events: number;
    readonly characters: number;
    readonly timeoutMs: number;
  }): AsyncIterable<{ readonly records: readonly EventRecord[] } | { readonly result: RunResult }>;
  /** Ends it before it starts. */
  withdraw(): void;
  cancel(reason: RunCancelled | AtCapacity): void;
  /** A live answer. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void;
}

/** Records as NDJSON. Joined at once: otherwise V8 would keep each line until the text is written. */
export function textOf(records: readonly EventRecord[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}

/** What a run says of itself before it starts, to be stored with it. */
export function announcedBy(run: RecordedRun): Pick<NewRun, "announced"> {
  const records = run.announced();
  return records.length === 0 ? {} : { announced: { count: records.length, text: textOf(records) } };
}

/** What a run's request and plan say, to be stored with it. @param sealing of its webhook's address */
export function describedBy(
  { key, request, plan }: Pick<RecordedRun, "key" | "request" | "plan">,
  sealing: Sealing,
): Pick<NewRun, "id" | "project" | "session" | "harness" | "sandbox" | "webhook"> {
  return {
    id: key,
    project: projectOf(request),
    session: request.sessionId,
    harness: plan.harness.actor.id,
    sandbox: plan.sandbox.actor.name,
    webhook: sealedWebhook(request, key, sealing),
  };
}

/** @param isShared whether another process could end the run */
export function recoveryOf(
  { key, recovery: { trace, recoveries }, requestCopy }: RecordedRun,
  sealing: Sealing,
  isShared = true,
): StoredRecovery {
  const isNeeded = isShared && Object.keys(recoveries).length > 0;
  return {
    trace,
    ...(isNeeded ? { sealedRecovery: sealing.seal(key, recoveries) } : {}),
    ...(requestCopy === undefined ? {} : { sealedCopy: sealing.seal(key, requestCopy) }),
  };
}

/**
 * Where events come fast, a group gathers for 2 ms, or until it has enough characters: it costs a store and each reader
 * nearly as much for few events as for many. An event that comes alone is written immediately.
 */
const gathering = { events: 16, characters: 65_536, timeoutMs: 2 };

/** Questions of one run that are sent to its webhook at most: an agent can ask any number. */
const maxQuestions = 100;

/** Why a run ends here that another replica has. */
export const takenOver = "Another replica has taken this run over.";
const unreachable = "The run's events could not be stored: the store can't be reached, or is full.";

/** What a group of events says of the run's questions. */
interface Questions {
  readonly asked: NewInteraction[];
  readonly withdrawn: string[];
  readonly deliveries: NewDelivery[];
}

export interface RecorderOptions {
  readonly run: RecordedRun;
  readonly runLog: Pick<RunLog, "append" | "end" | "runEnded" | "close">;
  readonly source: MessageSource;
  readonly fence: number;
  /** Whether the log has events already. */
  readonly isAnnounced: boolean;
  readonly log: Log;
}

/** Writes a run's events to its log in groups: while one is being written, the next one waits in the run. */
export class Recorder {
  /** Aborted when the run is lost, with the reason. */
  readonly #lost = new AbortController();
  #questionsSent = 0;
  /** Characters of the result as it is in the log. */
  resultLength = 0;
  /** Resolves with the result that is in the log; undefined if the run was lost. Never rejects. */
  readonly done: Promise<RunResult | undefined>;

  constructor(readonly options: RecorderOptions) {
    const { run, log, runLog } = options;
    void run.ended.then(() => runLog.runEnded());
    this.done = this.#record()
      .catch((thrown: unknown) => {
        log.error({ runId: run.id, error: toAmbitError(thrown) }, "a run could not be recorded");
        this.lose(new StoreFailed(unreachable));
        return undefined;
      })
      .finally(() => runLog.close());
  }

  get run(): RecordedRun {
    return this.options.run;
  }

  get fence(): number {
    return this.options.fence;
  }

  /** The run now belongs to another replica, or can't be recorded: it ends here, and nothing more is written. */
  lose(reason: RunCancelled | StoreFailed): void {
    if (this.#isLost) return;
    this.#lost.abort(reason);
    this.run.cancel(new RunCancelled(reason.message));
    this.options.runLog.close();
  }

  /** Why the run's result can't be stored, if that is the store's fault: its replica is alive. */
  get failure(): StoreFailed | undefined {
    const reason: unknown = this.#lost.signal.reason;
    return reason instanceof StoreFailed ? reason : undefined;
  }

  get #isLost(): boolean {
    return this.#lost.signal.aborted;
  }

  async #record(): Promise<RunResult | undefined> {
    let result: RunResult | undefined;
    // The run's readers get what is in the log already before the run starts to work.
    if (this.options.isAnnounced) await nextTurn();
    for await (const part of this.run.parts(gathering)) {
      if ("result" in part) result = part.result;
      else if (!this.#isLost) await this.#append(part.records);
    }
    if (this.#isLost || result === undefined) return undefined;
    return (await this.#finish(result)) ? result : undefined;
  }

  async #append(records: readonly EventRecord[]): Promise<void> {
    const { run, runLog, log } = this.options;
    try {
      const group = this.#groupOf(records);
      const written = await runLog.append(group, this.#lost.signal);
      if (written === "fenced") this.lose(new RunCancelled(takenOver));
      else if (written === "full")
        run.cancel(new AtCapacity("The run produced more events than are stored of one run (store.runMiB)."));
    } catch (thrown) {
      if (this.#isLost) return;
      log.error({ runId: run.id, error: messageOf(thrown) }, "events could not be stored: the run ends");
      this.lose(new StoreFailed(unreachable));
    }
  }

  #groupOf(records: readonly EventRecord[]): RecordGroup {
    const group: Questions = { asked: [], withdrawn: [], deliveries: [] };
    for (const { event } of records) this.#note(event, group);
    return { count: records.length, text: textOf(records), ...group };
  }

  /** Questions are also kept separately, in the same group. */
  #note(event: AgentEvent, { asked, withdrawn, deliveries }: Questions): void {
    if (!isAbout(event, "question")) return;
    switch (event.type) {
      case "interaction_request":
        asked.push({ id: event.id, kind: event.kind, payload: JSON.stringify(event.payload ?? {}) });
        deliveries.push(...this.#about(event));
        break;
      case "interaction_expired":
        withdrawn.push(event.id);
        if (this.#questionsSent <= maxQuestions) deliveries.push(...aboutExpiry(this.options.source, event));
        break;
      case "interaction_response":
        break;
      default:
        event satisfies never;
    }
  }

  #about(question: AgentEventOf<"interaction_request">): readonly NewDelivery[] {
    const { source, log } = this.options;
    const deliveries = aboutQuestion(source, question);
    this.#questionsSent += deliveries.length;
    if (this.#questionsSent <= maxQuestions) return deliveries;
    if (this.#questionsSent === maxQuestions + 1) {
      const message = `the run has asked more than ${maxQuestions} questions: no webhook is sent for further ones`;
      log.warn({ runId: this.run.id }, message);
    }
    return [];
  }

  async #finish(result: RunResult): Promise<boolean> {
    const { runLog, source } = this.options;
    const end = runEnd(source, result);
    const written = await runLog.end(end, this.#lost.signal);
    if (written === "fenced") this.lose(new RunCancelled(takenOver));
    this.resultLength = end.result.length;
    return written === "written";
  }
}

/** Characters of what a summary quotes, and of a name in it. */
const maxExcerpt = 200;
const maxName = 128;

/** What is written when a run has ended with this result, which has no events. */
export function runEnd(source: MessageSource, { events: _, ...result }: RunResult): RunEnd {
  const { model, usage } = result;
  return {
    result: JSON.stringify({ ...result, events: [] }),
    outcome: outcomeOf(result),
    summary: JSON.stringify(summarised(result)),
    session: result.sessionId,
    delivery: aboutEnd(source, { ...result, events: [] }),
    usd: usage?.cost ?? 0,
    inputTokens: usage?.input ?? 0,
    outputTokens: usage?.output ?? 0,
    model: model === undefined ? undefined : beginning(model, maxName),
  };
}

/** Pure. */
function summarised(result: Omit<RunResult, "events">): RunSummary {
  const { stopReason, failure, error, output = "", model, usage, receipt } = result;
  return {
    stopReason: stopReason === undefined ? undefined : beginning(stopReason, maxName),
    failure: failure?.code,
    excerpt: error === undefined ? ending(output, maxExcerpt) : beginning(error, maxExcerpt),
    model: model === undefined ? undefined : beginning(model, maxName),
    usage,
    receipt: receipt && {
      confinement: receipt.confinement,
      required: receipt.required,
      accepted: [...new Set(receipt.accepted.map(({ capability }) => capability))],
    },
  };
}

const beginning = (text: string, length: number) =>
  text.length <= length ? text : text.slice(0, pieceEnd(text, length));

/** The end of a text, which doesn't begin with half a character. */
const ending = (text: string, length: number) => text.slice(-length).replace(/^[\uDC00-\uDFFF]/, "");
