import type { AgentEvent } from "@ambit/core/plugin";

type BlockKind = "message" | "thought";

/** Merges consecutive chunks into blocks: `_start`, `_delta`…, `_end`. */
export class TextBlocks {
  #open: { readonly kind: BlockKind; readonly id: string; readonly source: string | undefined } | undefined;
  #count = 0;

  constructor(readonly emit: (event: AgentEvent) => void) {}

  /** `source` is the agent's id of the message, if it sends one: another message is another block. */
  add(kind: BlockKind, text: string, source: string | undefined): void {
    if (text === "") return;
    let open = this.#open;
    if (open === undefined || open.kind !== kind || (source !== undefined && source !== open.source)) {
      this.close();
      this.#count += 1;
      open = { kind, id: `${kind}-${this.#count}`, source };
      this.#open = open;
      this.emit({ type: kind === "message" ? "message_start" : "thought_start", id: open.id });
    }
    this.emit({ type: kind === "message" ? "message_delta" : "thought_delta", id: open.id, delta: text });
  }

  /** Any other event ends the block. */
  close(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.emit({ type: open.kind === "message" ? "message_end" : "thought_end", id: open.id });
  }
}
