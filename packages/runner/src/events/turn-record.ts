import { HarnessFailed } from "@ambit/core";
import {
  type AgentEvent,
  type EventWith,
  eventTraits,
  isOutput,
  isPart,
  traitsOf,
  type Usage,
} from "@ambit/core/contract";
import { pieceEnd } from "@ambit/core/plugin";
import { sizeOf } from "../json-values.js";

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
export class TurnRecord {
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

  /** As much of a text as fits; the rest is counted. */
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
