import type { AgentEvent } from "../contract/index.js";
import { StreamRedactor } from "./stream-redactor.js";

export { secretsOf } from "./secrets.js";

const mark = "[redacted]";

/** Takes known secrets out of texts, values and streams: plain, JSON-escaped, URL-encoded and in base64. */
export class Redactor {
  readonly #forms: readonly string[];
  readonly #pattern: RegExp | undefined;
  /** One per open block: its text comes in pieces. */
  readonly #blocks = new Map<string, StreamRedactor>();

  constructor(secrets: readonly string[]) {
    // Longest first: of two secrets, one a beginning of the other, the longer must be taken whole.
    this.#forms = [...new Set(secrets.flatMap(formsOf))].sort((a, b) => b.length - a.length);
    this.#pattern =
      this.#forms.length === 0 ? undefined : new RegExp(this.#forms.map(escapeRegExp).join("|"), "g");
  }

  text(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, mark);
  }

  /** The same value with every string in it redacted; the value itself when there is nothing to hide. */
  value<Value>(value: Value): Value {
    return this.#pattern === undefined ? value : (this.#redacted(value) as Value);
  }

  /**
   * The events to send instead of this one. A delta's end is held back while it could be the beginning of a
   * secret, so that none slips through between two; the block's end brings what was held.
   */
  event(event: AgentEvent): readonly AgentEvent[] {
    if (this.#pattern === undefined) return [event];
    switch (event.type) {
      case "message_delta":
      case "thought_delta": {
        const delta = this.#block(event.id).push(event.delta);
        return delta === "" ? [] : [{ ...event, id: this.text(event.id), delta }];
      }
      case "message_end":
      case "thought_end": {
        const id = this.text(event.id);
        const delta = this.#blocks.get(event.id)?.end() ?? "";
        this.#blocks.delete(event.id);
        const end = { ...event, id };
        if (delta === "") return [end];
        return [{ type: event.type === "message_end" ? "message_delta" : "thought_delta", id, delta }, end];
      }
      case "interaction_request":
      case "interaction_response":
        // What the contract enumerates is no text of anybody's, even if some secret reads the same.
        return [{ ...this.value(event), type: event.type, kind: event.kind }];
      default:
        return [Object.assign(this.value(event), { type: event.type })];
    }
  }

  #block(id: string): StreamRedactor {
    const known = this.#blocks.get(id);
    if (known !== undefined) return known;
    const block = new StreamRedactor(this.#forms, mark);
    this.#blocks.set(id, block);
    return block;
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [this.text(key), this.#redacted(inner)]),
    );
  }
}

function formsOf(given: string): readonly string[] {
  // A lone surrogate can't be encoded, and comes out of every encoder as the replacement character.
  const secret = Buffer.from(given).toString();
  const base64 = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [
    given,
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    base64,
    base64.replaceAll("+", "-").replaceAll("/", "_"),
  ].filter((form) => form !== "");
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
