import { createHash } from "node:crypto";
import { HarnessFailed } from "@ambit/core";
import { type AgentEvent, type EventWith, eventTraits, isPart, traitsOf } from "@ambit/core/contract";
import { Automaton, formsOf, Occurrences } from "@ambit/secret-forms";

/** What a reader sees in place of a secret. */
export const mark = "[redacted]";

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
    const before = new Set(this.#secrets);
    for (const secret of forgotten) this.#secrets.delete(secret);
    for (const secret of secrets) if (secret !== "") this.#secrets.add(secret);
    if (this.#secrets.symmetricDifference(before).size === 0) return;
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
    const openBlock = this.#blocks.get(id);
    if (openBlock !== undefined) return openBlock;
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

/** Those in use, by a digest of their secrets: a run, its session and the log look for the same ones. */
const inUse = new Map<string, WeakRef<Automaton>>();
/** Beyond so many, entries whose automaton is gone are dropped. */
const many = 256;

function automatonFor(secrets: readonly string[]): Automaton {
  const key = createHash("sha256").update(JSON.stringify(secrets.toSorted())).digest("base64url");
  const shared = inUse.get(key)?.deref();
  if (shared !== undefined) return shared;
  const built = new Automaton(secrets.flatMap(formsOf));
  if (inUse.size >= many) {
    for (const [each, reference] of inUse) if (reference.deref() === undefined) inUse.delete(each);
  }
  inUse.set(key, new WeakRef(built));
  return built;
}

/**
 * Redacts a text that arrives in pieces. The joined output is the same however the text is split: the end of what
 * came is held back for as long as it could still become a secret. Secrets that overlap or touch become one mark.
 */
class StreamRedactor {
  #state = 0;
  #held = "";
  /** Offsets in the whole input: where `#held` begins, and where the input read so far ends. */
  #from = 0;
  #read = 0;
  /** Found but not yet output. */
  #occurrences = new Occurrences();
  /** Where the secret of the last mark ends. */
  #marked = -1;
  #automaton: Automaton;

  constructor(
    automaton: Automaton,
    readonly mark: string,
  ) {
    this.#automaton = automaton;
  }

  /** Searches for the secrets of another one from now on, also in what is held back. */
  follow(automaton: Automaton): void {
    this.#automaton = automaton;
    this.#occurrences = new Occurrences();
    this.#state = 0;
    this.#search(this.#held, this.#from);
  }

  push(piece: string): string {
    this.#search(piece, this.#read);
    this.#read += piece.length;
    this.#held += piece;
    return this.#give(this.#read - this.#automaton.depth(this.#state));
  }

  /** Reads a text that begins at this offset of the input, and notes what occurs. */
  #search(text: string, offset: number): void {
    const automaton = this.#automaton;
    let state = this.#state;
    for (let index = 0; index < text.length; index += 1) {
      state = automaton.step(state, text.charCodeAt(index));
      const secret = automaton.ending(state);
      if (secret === -1) continue;
      const end = offset + index + 1;
      this.#occurrences.add(end - automaton.lengthOf(secret), end, secret);
    }
    this.#state = state;
  }

  /** Returns what was held back, at the end of the input. */
  end(): string {
    const remaining = this.#give(this.#read);
    this.#state = 0;
    this.#marked = -1;
    return remaining;
  }

  /** Outputs what precedes `until`, which no later piece can change. */
  #give(until: number): string {
    let output = "";
    let at = this.#from;
    for (const { start, end } of this.#occurrences.takeUntil(until)) {
      if (start > at) output += this.#text(at, start);
      if (start > this.#marked) output += this.mark;
      this.#marked = end;
      at = Math.max(at, end);
    }
    if (until > at) {
      output += this.#text(at, until);
      at = until;
    }
    this.#held = this.#held.slice(at - this.#from);
    this.#from = at;
    return output;
  }

  #text(start: number, end: number): string {
    return this.#held.slice(start - this.#from, end - this.#from);
  }
}
