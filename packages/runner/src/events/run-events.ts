/**
 * The events of a run on their way: redacted, recorded for the result, queued for the one reader. The boundary's decisions are
 * counted and folded before.
 */

import { HarnessFailed } from "@ambit/core";
import {
  type AgentEvent,
  type EventRecord,
  type EventWith,
  eventRecord,
  eventTraits,
  isOutput,
  isPart,
  type StageName,
  traitsOf,
  type Usage,
  type Warning,
} from "@ambit/core/contract";
import { type ConnectionDecision, pieceEnd } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { sizeOf } from "../json-values.js";
import type { RunLimits } from "../limits.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import { Observation, RunLogger } from "./observation.js";
import { Redactor } from "./redaction.js";
import { RunStages } from "./stages.js";

/** A run's events: each is redacted, then recorded, then queued for the reader. */
@injectable()
export class RunEvents {
  readonly record: TurnRecord;
  readonly decisions = new Decisions((event) => this.push(event));
  readonly stages = new RunStages((event) => this.emit(event));
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

  entered(stage: StageName): void {
    // What the boundary decided until now belongs to the stage that ends.
    this.decisions.flush();
    this.stages.enter(stage);
    this.observation.entered(stage);
  }

  /** Adds a warning to the run's result. */
  warn(warning: Warning): void {
    this.warnings.add(warning);
  }

  /** Sends an event of the runner itself. There are few of them, and they don't wait for the reader. */
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
      this.stages.end();
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

/** Destinations that are counted one by one; the others share one count. */
const maxDestinations = 100;

/** A decision as often as it was made. */
export interface CountedDecision {
  readonly decision: ConnectionDecision;
  readonly count: number;
}

/** The boundary's decisions, each with the number of times that it was made. */
export class DecisionTally {
  readonly #counted = new Map<string, { readonly decision: ConnectionDecision; count: number }>();

  /** @param othersReason the reason in the decision that sums up those beyond the first hundred destinations. */
  constructor(readonly othersReason: string) {}

  has(decision: ConnectionDecision): boolean {
    return this.#counted.has(keyOf(decision));
  }

  /** @param count how often it was made. */
  add(decision: ConnectionDecision, count = 1): void {
    const isListed = this.has(decision) || this.#counted.size < maxDestinations;
    const { allowed } = decision;
    const key = isListed ? keyOf(decision) : JSON.stringify([allowed]);
    const counted = this.#counted.get(key) ?? {
      decision: isListed ? decision : { target: "others", allowed, reason: this.othersReason },
      count: 0,
    };
    counted.count += count;
    this.#counted.set(key, counted);
  }

  /** All of them, once. */
  take(): readonly CountedDecision[] {
    const counted = [...this.#counted.values()];
    this.#counted.clear();
    return counted;
  }
}

function keyOf({ target, allowed, reason, failure }: ConnectionDecision): string {
  return JSON.stringify([allowed, target, reason, failure]);
}

/**
 * Counts the boundary's decisions, and folds a repeated one into one event with a count. Nothing slows the agent's
 * connections down, so while the reader is behind, decisions gather here, folded, instead of in its queue.
 */
export class Decisions {
  readonly #waiting = new DecisionTally(
    "more destinations than can have an event each; the receipt counts all of them",
  );
  #timer: NodeJS.Timeout | undefined;
  #behind = false;
  allowed = 0;
  /** Allowed connections that failed. */
  failed = 0;
  refused = 0;

  constructor(
    /** Resolves when there is room for more. */
    readonly emit: (event: AgentEvent) => Promise<void> | undefined,
    /** Milliseconds that a decision waits for its repeats. */
    readonly foldMs = 200,
  ) {}

  /** @param count how often it was made. */
  record(decision: ConnectionDecision, count = 1): void {
    const { allowed, failure, isReported } = decision;
    if (!allowed) this.refused += count;
    else if (isReported !== true) this.allowed += count;
    if (failure !== undefined) this.failed += count;
    // Only consecutive repeats share an event, as long as each event can be sent.
    if (!this.#behind && !this.#waiting.has(decision)) this.flush();
    this.#waiting.add(decision, count);
    this.#timer ??= setTimeout(() => {
      if (!this.#behind) this.flush();
    }, this.foldMs);
  }

  /** Reports what waits, even if the reader has no room. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let room: Promise<void> | undefined;
    for (const { decision, count } of this.#waiting.take()) {
      const { target, allowed, reason, failure } = decision;
      room = this.emit({ type: "boundary_decision", target, allowed, reason, failure, count });
    }
    if (room === undefined) return;
    this.#behind = true;
    void room.then(() => {
      this.#behind = false;
      this.flush();
    });
  }
}

/** Characters of a text's event in addition to the text. */
const frameLength = 28;
/** Texts and thoughts that may be open at the same time, and the length of the id of each. */
const maxOpenBlocks = 256;
const maxIdLength = 1_024;

/** A text that comes in pieces. */
interface OpenText {
  readonly type: "message" | "thought";
  readonly text: JoinedText;
  readonly parentToolCallId?: string | undefined;
}

/**
 * Summarises the events of a turn: its text, usage and stop reason, and its events with blocks coalesced. Keeps as much
 * as a result may carry; the rest is counted, and the result says so.
 */
class TurnRecord {
  readonly #events: AgentEvent[] = [];
  readonly #leftOut = { events: 0, characters: 0 };
  #room: number;
  readonly #open = new Map<string, OpenText>();
  readonly #texts: string[] = [];
  usage: Usage | undefined;
  stopReason: string | undefined;
  /** Whether the agent has produced output or called a tool. Thoughts, usage and transient data don't count. */
  hasOutput = false;

  /**
   * @param keepsEvents false for a stream, whose terminal record carries none.
   * @param most characters of texts and events together.
   */
  constructor(
    readonly keepsEvents: boolean,
    readonly max: number,
  ) {
    this.#room = max;
  }

  get output(): string {
    const { characters } = this.#leftOut;
    const missing = `[${characters} more characters: a result has at most ${this.max}, the stream has all]`;
    return [...this.#texts, ...(characters === 0 ? [] : [missing])].join("\n\n");
  }

  /** Characters that are kept. */
  get size(): number {
    return this.max - this.#room;
  }

  get events(): readonly AgentEvent[] {
    return this.#events;
  }

  /** @param size of the event, in characters that it takes in memory */
  add(event: AgentEvent, size = sizeOf(event)): void {
    this.hasOutput ||= isOutput(event);
    if (isPart(event, "start")) this.#startBlock(event);
    // A call's result has the whole output of its command.
    else if (event.type === "tool_output") return;
    else if (isPart(event, "delta")) this.#addText(event.id, event.delta);
    else if (event.type === "message_end" || event.type === "thought_end") this.#endBlock(event.id);
    // What a subagent says is only an event.
    else if (event.type === "message" && event.parentToolCallId !== undefined) this.#keep(event, size);
    else if (event.type === "message") this.#addBlock({ ...event, text: this.#fitting(event.text) });
    else this.#addWhole(event, size);
  }

  #addWhole(event: AgentEvent, size: number): void {
    if (event.type === "usage") {
      const { type: _type, ...usage } = event;
      this.usage = usage;
    } else if (event.type === "done") this.stopReason = event.stopReason;
    this.#keep(event, size);
  }

  /** The events that would end the open blocks. */
  openEnds(): readonly AgentEvent[] {
    return [...this.#open].map(([id, { type }]) => ({ type: `${type}_end` as const, id }));
  }

  #startBlock({ type, id, parentToolCallId }: EventWith<{ part: "start" }>): void {
    if (this.#open.size >= maxOpenBlocks || id.length > maxIdLength)
      throw new HarnessFailed(`The agent started more than ${maxOpenBlocks} texts without ending them.`);
    this.#open.set(id, { type: eventTraits[type].block, text: new JoinedText(), parentToolCallId });
  }

  #addText(id: string, delta: string): void {
    const block = this.#open.get(id);
    // A stream sends thoughts as they arrive; they aren't part of the output.
    const isOutput = block?.type === "message" && block.parentToolCallId === undefined;
    if (block === undefined || !(isOutput || this.keepsEvents)) return;
    const text = this.#fitting(delta);
    if (text !== "") block.text.add(text);
  }

  #endBlock(id: string): void {
    const block = this.#open.get(id);
    if (block === undefined) return;
    this.#open.delete(id);
    const { type, text, parentToolCallId: parent } = block;
    const nested = parent === undefined ? {} : { parentToolCallId: parent };
    this.#addBlock({ type, text: text.toString(), ...nested });
  }

  #addBlock(event: AgentEvent & { type: "message" | "thought" }): void {
    if (event.text === "" && this.#room === 0) return;
    this.#room -= Math.min(this.#room, frameLength);
    // What a subagent says is its call's result, in the end.
    if (event.type === "message" && event.parentToolCallId === undefined) this.#texts.push(event.text);
    if (this.keepsEvents) this.#events.push(event);
  }

  #keep(event: AgentEvent, size: number): void {
    if (!this.keepsEvents) return;
    const isRequired = traitsOf(event).isRequired === true;
    if (size > this.#room && !isRequired) {
      this.#room = 0;
      this.#markGap();
      this.#leftOut.events += 1;
      return;
    }
    this.#room -= Math.min(size, this.#room);
    this.#events.push(event);
  }

  /** Returns as much of a text as fits; the rest is counted. */
  #fitting(text: string): string {
    if (text.length <= this.#room) {
      this.#room -= text.length;
      return text;
    }
    const fitting = text.slice(0, pieceEnd(text, this.#room));
    this.#room = 0;
    this.#markGap();
    this.#leftOut.characters += text.length - fitting.length;
    return fitting;
  }

  /** Takes the place of the first missing event; its counts keep growing. */
  #markGap(): void {
    const { events, characters } = this.#leftOut;
    if (!this.keepsEvents || events + characters > 0) return;
    this.#events.push({ type: "data", name: "truncated", data: this.#leftOut });
  }
}

/** Pieces of a text that are joined. */
const maxPieces = 256;

/** A text in pieces. They are joined early, so that V8 needn't keep each of them. */
class JoinedText {
  #pieces: string[] = [];
  readonly #joined: string[] = [];

  add(piece: string): void {
    this.#pieces.push(piece);
    if (this.#pieces.length < maxPieces) return;
    this.#joined.push(this.#pieces.join(""));
    this.#pieces = [];
  }

  toString(): string {
    return [...this.#joined, ...this.#pieces].join("");
  }
}

/**
 * A run's events as its result carries them: each text and thought in one piece.
 * @param most characters, as `limits.resultCharacters`.
 */
export async function coalesced(
  events: AsyncIterable<AgentEvent>,
  max: number,
): Promise<readonly AgentEvent[]> {
  const record = new TurnRecord(true, max);
  for await (const event of events) record.add(event);
  return record.events;
}

/**
 * After a part of at least `events`, the next one gathers for `timeoutMs`, or until it has `characters`. An event that
 * comes alone is read immediately.
 */
export interface GatheringLimits {
  readonly events: number;
  readonly characters: number;
  readonly timeoutMs: number;
}

/**
 * The one buffer between a run and its log: many writers, one reader that takes all at once, bounded. `push` resolves when
 * the reader has caught up, so that a slow log slows the agent instead of filling our memory.
 */
export class EventChannel<Event extends NonNullable<unknown>> {
  #waiting: Event[] = [];
  #size = 0;
  readonly #writers: (() => void)[] = [];
  #reader: { readonly wake: () => void; readonly characters: number } | undefined;
  #closed = false;

  /** @param maxCharacters of the waiting events. A push beyond waits. The default is written in about a millisecond. */
  constructor(readonly maxCharacters = 131_072) {}

  /** Characters of the waiting events. */
  get size(): number {
    return this.#size;
  }

  /** Resolves immediately while there is room. After `close` the event is dropped, since nothing reads it. */
  push(event: Event, size: number): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#waiting.push(event);
    this.#size += size;
    this.#wakeReader();
    if (this.#size <= this.maxCharacters) return undefined;
    return new Promise((resolve) => this.#writers.push(resolve));
  }

  /** Ends the reader's loop once it has taken the waiting events. */
  close(): void {
    this.#closed = true;
    this.#wakeReader();
    this.#wakeWriters();
  }

  /** All waiting events, in order. */
  take(): readonly Event[] {
    const taken = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    this.#wakeWriters();
    return taken;
  }

  /**
   * Yields all waiting events together, as soon as there are any, until the channel is closed. What is pushed after the
   * reader has left is dropped.
   * @param gathering Default: none.
   */
  async *groups(gathering?: GatheringLimits): AsyncGenerator<readonly Event[], void, undefined> {
    let isStream = false;
    try {
      for (;;) {
        if (isStream && gathering !== undefined) await this.#gather(gathering);
        await this.#some();
        const events = this.take();
        if (events.length === 0 && this.#closed) return;
        isStream = gathering !== undefined && events.length >= gathering.events;
        if (events.length > 0) yield events;
      }
    } finally {
      this.close();
      this.take();
    }
  }

  /** Resolves when there is an event to take, or no more can come. */
  async #some(): Promise<void> {
    if (this.#waiting.length > 0 || this.#closed) return;
    await new Promise<void>((resolve) => {
      this.#reader = { wake: resolve, characters: 0 };
    });
  }

  /** Resolves when the waiting events have this size, no more can come, or the time is over. */
  async #gather({ characters, timeoutMs }: GatheringLimits): Promise<void> {
    if (this.#closed || this.#size >= characters) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#reader = undefined;
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#reader = { wake, characters };
    });
  }

  /** After everything that is ready has been written, so that events that arrive together are read together. */
  #wakeReader(): void {
    const reader = this.#reader;
    if (reader === undefined || (!this.#closed && this.#size < reader.characters)) return;
    this.#reader = undefined;
    process.nextTick(reader.wake);
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}
