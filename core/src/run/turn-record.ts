import type { AgentEvent, Usage } from "../contract/index.js";

/** What the events of a turn add up to: its text, usage and stop reason, and its events with blocks coalesced. */
export class TurnRecord {
  readonly #events: AgentEvent[] = [];
  readonly #open = new Map<string, { readonly type: "message" | "thought"; text: string[] }>();
  readonly #texts: string[] = [];
  usage: Usage | undefined;
  stopReason: string | undefined;

  /** @param keepsEvents false for a stream, whose terminal record carries none. */
  constructor(readonly keepsEvents: boolean) {}

  get output(): string {
    return this.#texts.join("\n\n");
  }

  get events(): readonly AgentEvent[] {
    return this.#events;
  }

  add(event: AgentEvent): void {
    switch (event.type) {
      case "message_start":
      case "thought_start":
        this.#open.set(event.id, { type: event.type === "message_start" ? "message" : "thought", text: [] });
        return;
      case "message_delta":
      case "thought_delta":
        this.#open.get(event.id)?.text.push(event.delta);
        return;
      case "message_end":
      case "thought_end":
        this.#endBlock(event.id);
        return;
      case "message":
        this.#texts.push(event.text);
        break;
      case "usage": {
        const { type: _type, ...usage } = event;
        this.usage = usage;
        break;
      }
      case "done":
        this.stopReason = event.stopReason;
        break;
      default:
    }
    this.#keep(event);
  }

  /** The events that would end the blocks which are open. */
  openEnds(): readonly AgentEvent[] {
    return [...this.#open].map(([id, { type }]) => ({ type: `${type}_end` as const, id }));
  }

  #endBlock(id: string): void {
    const block = this.#open.get(id);
    if (block === undefined) return;
    this.#open.delete(id);
    const text = block.text.join("");
    if (block.type === "message") this.#texts.push(text);
    this.#keep({ type: block.type, text });
  }

  #keep(event: AgentEvent): void {
    if (this.keepsEvents) this.#events.push(event);
  }
}
