import { setImmediate as nextTurn } from "node:timers/promises";
import { AtCapacity, messageOf, RunCancelled, StoreFailed, toAmbitError } from "@ambit/core";
import type { AgentEvent, AgentEventOf, RunResult } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { patiently } from "../outage.js";
import type { StoreSettings } from "../settings.js";
import type { EventGroup, NewDelivery, NewInteraction, NewRun, Store } from "../store/index.js";
import { aboutEnd, aboutQuestion, type MessageSource } from "../webhooks/messages.js";
import { LogTail } from "./log-tail.js";
import { type RecordedRun, textOf } from "./recorded-run.js";

/**
 * Characters that may be buffered while a group is being written; then the run waits. Large enough that the store's
 * throughput limits a run, and not the latency of a commit.
 */
const maxBufferedCharacters = 524_288;

/**
 * After a group of at least `events`, the next one gathers for `gatherMs`, or until it has `characters`: a commit costs
 * the store nearly as much for few events as for many. An event that comes alone is written immediately.
 */
const stream = { events: 16, gatherMs: 2, characters: 65_536 };

/** Questions of one run that are sent to its webhook at most: an agent can ask any number. */
const maxQuestions = 100;

/** Of a run that another replica has. */
export const takenOver = "Another replica has taken this run over.";
const unreachable = "The run's events could not be stored: the store can't be reached, or is full.";

interface Gathered {
  count: number;
  texts: string[];
  size: number;
  asked: NewInteraction[];
  answered: string[];
  deliveries: NewDelivery[];
}

const nothing = (): Gathered => ({ count: 0, texts: [], size: 0, asked: [], answered: [], deliveries: [] });

/**
 * Writes a run's events to the store in groups: while one is being written, the next one gathers. Readers get only what
 * was committed.
 */
export class Recorder {
  readonly tail = new LogTail();
  #gathered = nothing();
  #recorded = 0;
  #size = 0;
  #writing: Promise<void> | undefined;
  /** Aborted when the run is lost, with the reason. */
  readonly #lost = new AbortController();
  /** Resumes a run that waits for room in the buffer. */
  #wake: (() => void) | undefined;
  /** Ends the wait of a group that is gathering. */
  #enough: (() => void) | undefined;
  #isOver = false;
  #questionsSent = 0;
  /** Resolves with the stored result; undefined if the run was lost. Never rejects. */
  readonly done: Promise<RunResult | undefined>;

  constructor(
    readonly store: Store,
    readonly run: RecordedRun,
    readonly source: MessageSource,
    readonly fence: number,
    readonly settings: StoreSettings,
    readonly log: Log,
    announced: NewRun["announced"] = { count: 0, text: "" },
  ) {
    this.#recorded = announced.count;
    this.#size = announced.text.length;
    if (announced.count > 0) this.tail.add({ first: 1, ...announced });
    this.done = this.#record().catch((thrown: unknown) => {
      log.error({ runId: run.id, error: toAmbitError(thrown) }, "a run could not be recorded");
      this.lose(new StoreFailed(unreachable));
      return undefined;
    });
  }

  /** The run now belongs to another replica, or can't be recorded: it ends here, and nothing more is written. */
  lose(reason: RunCancelled | StoreFailed): void {
    if (this.#isLost) return;
    this.#lost.abort(reason);
    this.#enough?.();
    this.run.cancel(new RunCancelled(reason.message));
    this.tail.lose();
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
    // Its readers get what is stored already before it starts to work.
    if (this.#recorded > 0) await nextTurn();
    for await (const part of this.run.parts()) {
      if (this.#isLost) continue;
      if ("result" in part) result = part.result;
      else {
        this.#gather(part.events);
        if (this.#gathered.size >= maxBufferedCharacters) await this.#room();
      }
    }
    this.#isOver = true;
    this.#enough?.();
    while (this.#gathered.count > 0 || this.#writing !== undefined) await this.#write();
    if (this.#isLost || result === undefined) return undefined;
    return (await this.#finish(result)) ? result : undefined;
  }

  #gather(events: readonly AgentEvent[]): void {
    const gathered = this.#gathered;
    for (const event of events) {
      if (event.type === "interaction_request" || event.type === "interaction_response")
        this.#note(event, gathered);
    }
    const text = textOf(events);
    gathered.texts.push(text);
    gathered.size += text.length;
    gathered.count += events.length;
    if (gathered.size >= stream.characters) this.#enough?.();
    if (this.#writing === undefined) this.#writeSoon();
  }

  /** Questions and answers are also stored separately, in the same group. */
  #note(
    event: AgentEventOf<"interaction_request"> | AgentEventOf<"interaction_response">,
    { asked, answered, deliveries }: Gathered,
  ): void {
    if (event.type === "interaction_response") {
      answered.push(event.id);
      return;
    }
    asked.push({ id: event.id, kind: event.kind, payload: JSON.stringify(event.payload ?? {}) });
    deliveries.push(...this.#about(event));
  }

  /** Resolves when the current group is stored, and writing of the next one has begun. */
  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #about(question: AgentEventOf<"interaction_request">): readonly NewDelivery[] {
    const deliveries = aboutQuestion(this.source, question);
    this.#questionsSent += deliveries.length;
    if (this.#questionsSent <= maxQuestions) return deliveries;
    if (this.#questionsSent === maxQuestions + 1) {
      const message = `the run has asked more than ${maxQuestions} questions: no webhook is sent for further ones`;
      this.log.warn({ runId: this.run.id }, message);
    }
    return [];
  }

  /** Events that arrive together are written together. */
  #writeSoon(): void {
    this.#writing = new Promise<void>((resolve) => process.nextTick(resolve)).then(() => this.#writeAll());
  }

  #write(): Promise<void> {
    if (this.#writing === undefined) this.#writeSoon();
    return this.#writing ?? Promise.resolve();
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#gathered.count > 0 && !this.#isLost) {
        const group = this.#take();
        await this.#append(group);
        if (group.count >= stream.events) await this.#more();
      }
    } catch (thrown) {
      if (this.#isLost) return;
      this.log.error(
        { runId: this.run.id, error: messageOf(thrown) },
        "events could not be stored: the run ends",
      );
      this.lose(new StoreFailed(unreachable));
    } finally {
      this.#writing = undefined;
      if (this.#isLost) this.#gathered = nothing();
      this.#wake?.();
      this.#wake = undefined;
    }
  }

  /** Resolves when the next group is worth a commit. */
  async #more(): Promise<void> {
    if (this.#gathered.size >= stream.characters || this.#isOver || this.#isLost) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, stream.gatherMs);
      this.#enough = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#enough = undefined;
  }

  #take(): EventGroup {
    const { count, texts, asked, answered, deliveries } = this.#gathered;
    this.#gathered = nothing();
    this.#wake?.();
    this.#wake = undefined;
    return {
      ...{ runId: this.run.key, fence: this.fence, first: this.#recorded + 1, count, text: texts.join("") },
      ...(asked.length === 0 ? {} : { asked }),
      ...(answered.length === 0 ? {} : { answered }),
      ...(deliveries.length === 0 ? {} : { deliveries }),
    };
  }

  async #append(group: EventGroup): Promise<void> {
    const { store, settings, log } = this;
    const append = () => store.append(group);
    const written = await patiently("keep events", settings.retryTimeoutMs, log, append, this.#lost.signal);
    if (written === "fenced") {
      this.lose(new RunCancelled(takenOver));
      return;
    }
    const { first, count, text } = group;
    this.#recorded += count;
    this.#size += text.length;
    this.tail.add({ first, count, text });
    if (this.#size <= settings.runMiB * 1_048_576) return;
    this.run.cancel(
      new AtCapacity(
        `The run produced more than ${settings.runMiB} MiB of events, the most that is stored for one run.`,
      ),
    );
  }

  async #finish(result: RunResult): Promise<boolean> {
    const { store, run, fence, settings, log, tail } = this;
    const text = JSON.stringify({ ...result, events: [] });
    const end = {
      ...{ result: text, session: result.sessionId, paused: result.stopReason === "paused" },
      deliveries: aboutEnd(this.source, result),
      usd: result.usage?.cost ?? 0,
    };
    const finish = () => store.finish(run.key, fence, end);
    const written = await patiently("keep a result", settings.retryTimeoutMs, log, finish, this.#lost.signal);
    if (written === "fenced") this.lose(new RunCancelled(takenOver));
    else tail.end(text);
    return written === "written";
  }
}
