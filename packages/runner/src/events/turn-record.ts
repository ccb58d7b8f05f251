import { HarnessFailed } from "@ambit/core";
import type { AgentEvent, Usage } from "@ambit/core/contract";
import { pieceEnd } from "@ambit/core/plugin";
import { sizeOf } from "../lifetime/memory/size.js";

/** Characters of a text's event in addition to the text. */
const frameLength = 28;
/** Texts and thoughts that may be open at the same time, and the length of the id of each. */
const maxOpenBlocks = 256;
const maxIdLength = 1_024;

/**
 * Summarises the events of a turn: its text, usage and stop reason, and its events with blocks coalesced. Keeps as much
 * as a result may carry; the rest is counted, and the result says so.
 */
export class TurnRecord {
  readonly #events: AgentEvent[] = [];
  readonly #leftOut = { events: 0, characters: 0 };
  #room: number;
  readonly #open = new Map<string, { readonly type: "message" | "thought"; readonly text: JoinedText }>();
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
    switch (event.type) {
      case "message_start":
      case "thought_start":
        this.#requireRoom(event.id);
        this.#open.set(event.id, {
          type: event.type === "message_start" ? "message" : "thought",
          text: new JoinedText(),
        });
        return;
      case "message_delta":
      case "thought_delta":
        this.#addText(event.id, event.delta);
        return;
      case "message_end":
      case "thought_end":
        this.#endBlock(event.id);
        return;
      case "tool_output":
        // The call's result has the whole output.
        return;
      case "message":
        this.#addBlock({ type: "message", text: this.#fitting(event.text) });
        return;
      case "usage": {
        const { type: _type, ...usage } = event;
        this.usage = usage;
        break;
      }
      case "done":
        this.stopReason = event.stopReason;
        break;
      case "turn":
      case "thought":
      case "tool_call":
      case "tool_result":
      case "interaction_request":
      case "interaction_response":
      case "interaction_expired":
      case "boundary_decision":
      case "mode":
      case "commands":
      case "configuration":
      case "data":
      case "file":
      case "mcp_server_failed":
      case "error":
        break;
      default:
        event satisfies never;
    }
    this.#keep(event, size);
  }

  /** The events that would end the open blocks. */
  openEnds(): readonly AgentEvent[] {
    return [...this.#open].map(([id, { type }]) => ({ type: `${type}_end` as const, id }));
  }

  #requireRoom(id: string): void {
    if (this.#open.size < maxOpenBlocks && id.length <= maxIdLength) return;
    throw new HarnessFailed(`The agent started more than ${maxOpenBlocks} texts without ending them.`);
  }

  #addText(id: string, delta: string): void {
    const block = this.#open.get(id);
    // A stream sends thoughts as they arrive; they aren't part of the output.
    if (block === undefined || (block.type === "thought" && !this.keepsEvents)) return;
    const text = this.#fitting(delta);
    if (text !== "") block.text.add(text);
  }

  #endBlock(id: string): void {
    const block = this.#open.get(id);
    if (block === undefined) return;
    this.#open.delete(id);
    this.#addBlock({ type: block.type, text: block.text.toString() });
  }

  #addBlock(event: AgentEvent & { type: "message" | "thought" }): void {
    if (event.text === "" && this.#room === 0) return;
    this.#room -= Math.min(this.#room, frameLength);
    if (event.type === "message") this.#texts.push(event.text);
    if (this.keepsEvents) this.#events.push(event);
  }

  #keep(event: AgentEvent, size: number): void {
    if (!this.keepsEvents) return;
    // A caller can't continue without these, so they are always carried.
    const isNeeded = event.type === "interaction_request" || event.type === "done";
    if (size > this.#room && !isNeeded) {
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

function isOutput(event: AgentEvent): boolean {
  switch (event.type) {
    case "message":
      return event.text.trim() !== "";
    case "message_delta":
      return event.delta.trim() !== "";
    case "data":
      return event.transient !== true;
    case "file":
    case "tool_call":
    case "tool_result":
    case "interaction_request":
    case "interaction_response":
      return true;
    case "turn":
    case "thought":
    case "message_start":
    case "message_end":
    case "thought_start":
    case "thought_delta":
    case "thought_end":
    case "tool_output":
    case "interaction_expired":
    case "boundary_decision":
    case "mode":
    case "commands":
    case "configuration":
    case "usage":
    case "mcp_server_failed":
    case "error":
    case "done":
      return false;
  }
}
