import { setImmediate as nextTurn } from "node:timers/promises";
import { AtCapacity, messageOf, RunCancelled, StoreFailed, toAmbitError } from "@ambit/core";
import { type AgentEvent, type AgentEventOf, isAbout, type RunResult } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { runEnd } from "../run-end.js";
import type { NewDelivery, NewInteraction } from "../store/index.js";
import { aboutExpiry, aboutQuestion, type MessageSource } from "../webhooks/messages.js";
import type { RecordGroup, RunLog } from "./follow.js";
import { type RecordedRun, textOf } from "./recorded-run.js";

/**
 * Where events come fast, a group gathers for 2 ms, or until it has enough characters: it costs a store and each reader
 * nearly as much for few events as for many. An event that comes alone is written immediately.
 */
const gathering = { events: 16, characters: 65_536, timeoutMs: 2 };

/** Questions of one run that are sent to its webhook at most: an agent can ask any number. */
const maxQuestions = 100;

/** Of a run that another replica has. */
export const takenOver = "Another replica has taken this run over.";
const unreachable = "The run's events could not be stored: the store can't be reached, or is full.";

/** What a group of events says of the run's questions. */
interface Questions {
  readonly asked: NewInteraction[];
  readonly withdrawn: string[];
  readonly deliveries: NewDelivery[];
}

interface RecorderOptions {
  readonly run: RecordedRun;
  readonly runLog: RunLog;
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
    // Its readers get what is in the log already before it starts to work.
    if (this.options.isAnnounced) await nextTurn();
    for await (const part of this.run.parts(gathering)) {
      if ("result" in part) result = part.result;
      else if (!this.#isLost) await this.#append(part.events);
    }
    if (this.#isLost || result === undefined) return undefined;
    return (await this.#finish(result)) ? result : undefined;
  }

  async #append(events: readonly AgentEvent[]): Promise<void> {
    const { run, runLog, log } = this.options;
    try {
      const group = this.#groupOf(events);
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

  #groupOf(events: readonly AgentEvent[]): RecordGroup {
    const group: Questions = { asked: [], withdrawn: [], deliveries: [] };
    for (const event of events) this.#note(event, group);
    return { count: events.length, text: textOf(events), ...group };
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
