import { HarnessFailed } from "@ambit/core";
import { type AgentEvent, type EventWith, eventTraits, isPart, traitsOf } from "@ambit/core/contract";
import { loopTurnSize, loopTurns } from "@ambit/core/plugin";
import type { Automaton } from "@ambit/secret-forms";
import { sizeOf } from "../../lifetime/memory/size.js";
import { automatonFor } from "./shared-automaton.js";
import { StreamRedactor } from "./stream.js";

const mark = "[redacted]";

/** Texts whose end may be held back at the same time. */
const maxBlocks = 256;

const deltaTypes = { message: "message_delta", thought: "thought_delta", output: "tool_output" } as const;

/** A call's id may be a text's too. */
function blockOf(event: EventWith<{ part: "delta" }> | EventWith<{ part: "end" }>): string {
  return eventTraits[event.type].block === "output" ? `output ${event.id}` : event.id;
}

/** The fields that are sent as they are. */
function enumeratedIn(event: AgentEvent): object {
  const { enumerated } = traitsOf(event);
  const values = Object.entries(event).filter(([key]) => key === "type" || key === enumerated);
  return Object.fromEntries(values);
}

/** Removes known secrets from texts, values and streams, in every form that `formsOf` returns. */
export class Redactor {
  readonly #secrets = new Set<string>();
  /** Undefined if there are no secrets. */
  #automaton: Automaton | undefined;
  /** One per open block: its text comes in pieces. */
  readonly #blocks = new Map<string, StreamRedactor>();
  /** Large values that were redacted already, by the original. */
  #prepared = new WeakMap<object, unknown>();
  /** The same for long texts, until they have been passed on. */
  readonly #preparedTexts = new Map<string, string>();

  constructor(secrets: readonly string[]) {
    this.hide(secrets);
  }

  /** Adds secrets, also to blocks that are already open. @param forgotten earlier ones that are no longer searched for */
  hide(secrets: Iterable<string>, forgotten: Iterable<string> = []): void {
    const known = new Set(this.#secrets);
    for (const secret of forgotten) this.#secrets.delete(secret);
    for (const secret of secrets) if (secret !== "") this.#secrets.add(secret);
    if (this.#secrets.symmetricDifference(known).size === 0) return;
    const automaton = automatonFor([...this.#secrets]);
    this.#automaton = automaton;
    for (const block of this.#blocks.values()) block.follow(automaton);
    this.#prepared = new WeakMap();
    this.#preparedTexts.clear();
  }

  /** Whether there is anything to hide. */
  get hides(): boolean {
    return this.#automaton !== undefined;
  }

  text(text: string): string {
    if (this.#automaton === undefined || text === "") return text;
    const prepared = text.length > loopTurnSize ? this.#preparedTexts.get(text) : undefined;
    if (prepared !== undefined) return prepared;
    const redactor = new StreamRedactor(this.#automaton, mark);
    return redactor.push(text) + redactor.end();
  }

  /** The same for a text of any length, in turns of the event loop. */
  async longText(text: string): Promise<string> {
    if (this.#automaton === undefined || text.length <= loopTurnSize) return this.text(text);
    const redactor = new StreamRedactor(this.#automaton, mark);
    const parts: string[] = [];
    for (let at = 0; at < text.length; at += loopTurnSize) {
      await loopTurns.take(loopTurnSize);
      parts.push(redactor.push(text.slice(at, at + loopTurnSize)));
    }
    return [...parts, redactor.end()].join("");
  }

  /**
   * Redacts the large values of a value in turns of the event loop: `value`, `text` and `event` return them at once then.
   * Their depth is limited. Resolves with what releases the long texts among them.
   */
  async prepare(value: object): Promise<() => void> {
    const texts: string[] = [];
    for (const inner of Object.values(value)) {
      if (typeof inner === "string" && inner.length > loopTurnSize) {
        const automaton = this.#automaton;
        const redacted = await this.longText(inner);
        // Other secrets may have been added meanwhile.
        if (this.#automaton === automaton) this.#preparedTexts.set(inner, redacted);
        texts.push(inner);
      } else if (typeof inner === "object" && inner !== null) await this.#prepareLarge(inner);
    }
    return () => {
      for (const text of texts) this.#preparedTexts.delete(text);
    };
  }

  async #prepareLarge(value: object): Promise<void> {
    if (
      this.#automaton === undefined ||
      this.#prepared.has(value) ||
      sizeOf(value, loopTurnSize) <= loopTurnSize
    )
      return;
    const automaton = this.#automaton;
    const redacted = await this.#largeValue(value, { left: 0 });
    // Other secrets may have been added meanwhile.
    if (this.#automaton === automaton) this.#prepared.set(value, redacted);
  }

  /** @param room what is left of a turn of the event loop. */
  async #largeValue(value: object, room: { left: number }): Promise<unknown> {
    const entries: [string, unknown][] = [];
    for (const [key, inner] of Object.entries(value)) {
      const size = sizeOf(inner, loopTurnSize);
      if (size > loopTurnSize) {
        entries.push([key, await this.#large(inner, room)]);
        continue;
      }
      if (room.left < size) {
        await loopTurns.take(loopTurnSize);
        room.left = loopTurnSize;
      }
      room.left -= size;
      entries.push([key, this.#redacted(inner)]);
    }
    return Array.isArray(value) ? entries.map(([, inner]) => inner) : this.#object(entries);
  }

  async #large(value: unknown, room: { left: number }): Promise<unknown> {
    if (typeof value === "string") return this.longText(value);
    return typeof value === "object" && value !== null ? this.#largeValue(value, room) : value;
  }

  /** The same value with every string in it redacted; the value itself when there is nothing to hide. */
  value<Value>(value: Value): Value {
    return this.#automaton === undefined ? value : (this.#redacted(value) as Value);
  }

  /**
   * The events to send instead of this one. A delta's end is held back while it could be the beginning of a
   * secret, so that none slips through between two; the block's end brings what was held.
   */
  event(event: AgentEvent): readonly AgentEvent[] {
    if (this.#automaton === undefined) return [event];
    if (isPart(event, "delta")) {
      const delta = this.#block(blockOf(event), this.#automaton).push(event.delta);
      return delta === "" ? [] : [{ ...event, id: this.text(event.id), delta }];
    }
    const redacted = Object.assign(this.value(event), enumeratedIn(event));
    if (!isPart(event, "end")) return [redacted];
    const delta = this.#ended(blockOf(event));
    if (delta === "") return [redacted];
    const { block } = eventTraits[event.type];
    return [{ type: deltaTypes[block], id: this.text(event.id), delta }, redacted];
  }

  /** The end of a text that was held back. */
  #ended(id: string): string {
    const delta = this.#blocks.get(id)?.end() ?? "";
    this.#blocks.delete(id);
    return delta;
  }

  #block(id: string, automaton: Automaton): StreamRedactor {
    const known = this.#blocks.get(id);
    if (known !== undefined) return known;
    if (this.#blocks.size >= maxBlocks)
      throw new HarnessFailed(`The agent started more than ${maxBlocks} texts without ending them.`);
    const block = new StreamRedactor(automaton, mark);
    this.#blocks.set(id, block);
    return block;
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value !== "object" || value === null) return value;
    const prepared = this.#prepared.get(value);
    if (prepared !== undefined) return prepared;
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    return this.#object(Object.entries(value).map(([key, inner]) => [key, this.#redacted(inner)]));
  }

  #object(entries: readonly (readonly [string, unknown])[]): object {
    return Object.fromEntries(entries.map(([key, inner]) => [this.text(key), inner]));
  }
}
