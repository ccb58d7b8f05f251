import { type AgentEvent, type EventRecord, eventRecord, type Warning } from "@ambit/core/contract";
import type { ObservedStage } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { sizeOf } from "../json-values.js";
import type { RunLimits } from "../limits.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import { Decisions } from "./decisions.js";
import { EventChannel } from "./event-channel.js";
import { Observation, RunLogger } from "./observation.js";
import { Redactor } from "./redaction/redactor.js";
import { TurnRecord } from "./turn-record.js";

/** A run's events: each is redacted, then recorded, then queued for the reader. */
@injectable()
export class RunEvents {
  readonly record: TurnRecord;
  readonly decisions = new Decisions((event) => this.push(event));
  /** What the run's one reader has yet to take. */
  readonly unread = new EventChannel<EventRecord>();
  #isClosed = false;

  readonly redactor: Redactor;
  readonly warnings: Warnings;
  readonly observation: Observation;

  constructor(
    @inject(tokens.run) run: PlannedRun,
    @inject(tokens.limits) { resultCharacters }: RunLimits,
    @inject(tokens.services) { observers }: RunnerServices,
    @inject(RunLogger) log: RunLogger,
  ) {
    this.redactor = new Redactor(run.secrets);
    this.record = new TurnRecord(run.keepsEvents, resultCharacters);
    this.warnings = new Warnings(run.warnings);
    this.observation = new Observation(run, observers, log);
  }

  /** The run begins: its observers are notified. @param announcements its first events. */
  begin(announcements: readonly AgentEvent[]): void {
    this.observation.begin((text) => this.redactor.text(text));
    for (const event of announcements) this.emit(event);
  }

  entered(stage: ObservedStage): void {
    // What the boundary decided until now belongs to the stage that ends.
    this.decisions.flush();
    this.observation.entered(stage);
  }

  /** For the run's result. */
  warn(warning: Warning): void {
    this.warnings.add(warning);
  }

  /** For the few events of the runner itself, which don't wait for the reader. */
  emit(event: AgentEvent): void {
    void this.push(event);
  }

  /** Resolves when there is room for more. Undefined if there is room now. */
  push(event: AgentEvent): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    if (!this.redactor.hides) return this.#keep(event);
    let room: Promise<void> | undefined;
    for (const safe of this.redactor.event(event)) room = this.#keep(safe);
    return room;
  }

  #keep(safe: AgentEvent): Promise<void> | undefined {
    const size = sizeOf(safe);
    this.record.add(safe, size);
    this.observation.happened(safe);
    return this.unread.push(eventRecord(safe, Date.now()), size);
  }

  /** The approximate number of characters held here. */
  get held(): number {
    return this.record.size + this.unread.size;
  }

  /** Ends the blocks that an interrupted turn left open, so that no text is lost. */
  endBlocks(): void {
    for (const end of this.record.openEnds()) this.emit(end);
  }

  /**
   * Ends the events: the reader gets what is queued, the run's one `done`, and then the end, even if something throws.
   */
  close(stopReason: () => string | undefined, onThrown: (thrown: unknown) => void): void {
    try {
      this.decisions.flush();
      this.endBlocks();
    } catch (thrown) {
      onThrown(thrown);
    }
    try {
      const reason = stopReason();
      const { traceId } = this.observation;
      this.emit({
        type: "done",
        stopReason: reason,
        traceId,
      });
    } catch (thrown) {
      onThrown(thrown);
    } finally {
      this.#isClosed = true;
      this.unread.close();
    }
  }

  /** The agent's whole output. Redacted again as a whole, since its blocks were redacted separately. */
  output(): string {
    return this.redactor.text(this.record.output);
  }
}

/** Warnings of one result at most. Those that an agent's behaviour causes have no other limit. */
export const maxWarnings = 100;

/** The warnings for the caller, without duplicates, in the order in which they were found. */
export class Warnings {
  readonly #warnings = new Map<string, Warning>();

  constructor(warnings: readonly Warning[] = []) {
    for (const warning of warnings) this.add(warning);
  }

  add(warning: Warning): void {
    if (this.#warnings.size < maxWarnings)
      this.#warnings.set(JSON.stringify([warning.path, warning.message]), warning);
  }

  /** Undefined when there are none: the result then has no such field. */
  get list(): Warning[] | undefined {
    return this.#warnings.size === 0 ? undefined : [...this.#warnings.values()];
  }
}
