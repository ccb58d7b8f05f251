import { HarnessFailed } from "@ambit/core";
import { type AgentEvent, type EventWith, eventTraits, isPart, traitsOf } from "@ambit/core/contract";
import type { Automaton } from "@ambit/secret-forms";
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
  }

  /** Whether there is anything to hide. */
  get hides(): boolean {
    return this.#automaton !== undefined;
  }

  text(text: string): string {
    if (this.#automaton === undefined || text === "") return text;
    const redactor = new StreamRedactor(this.#automaton, mark);
    return redactor.push(text) + redactor.end();
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
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [this.text(key), this.#redacted(inner)]),
    );
  }
}
