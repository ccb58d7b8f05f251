import type { AgentEvent } from "@ambit/core/plugin";

type BlockKind = "message" | "thought";

interface OpenBlock {
  readonly kind: BlockKind;
  readonly id: string;
  readonly source: string | undefined;
}

/** A chunk of text. */
interface Chunk {
  readonly kind: BlockKind;
  readonly text: string;
  /** The agent's id of the message, if it sends one: another message is another block. */
  readonly source: string | undefined;
  /** The call that began the subagent which says it; undefined for the agent itself. */
  readonly parent: string | undefined;
}

/**
 * Merges consecutive chunks into blocks: `_start`, `_delta`…, `_end`. The agent and each of its subagents say one after the
 * other; they may do so at the same time.
 */
export class TextBlocks {
  /** By the call that began the subagent; undefined for the agent itself. */
  readonly #open = new Map<string | undefined, OpenBlock>();
  #count = 0;

  constructor(readonly emit: (event: AgentEvent) => void) {}

  add({ kind, text, source, parent }: Chunk): void {
    if (text === "") return;
    let open = this.#open.get(parent);
    if (open === undefined || open.kind !== kind || (source !== undefined && source !== open.source)) {
      this.close(parent);
      this.#count += 1;
      open = { kind, id: `${kind}-${this.#count}`, source };
      this.#open.set(parent, open);
      const type = kind === "message" ? "message_start" : "thought_start";
      this.emit({ type, id: open.id, ...(parent === undefined ? {} : { parentToolCallId: parent }) });
    }
    this.emit({ type: kind === "message" ? "message_delta" : "thought_delta", id: open.id, delta: text });
  }

  closeAll(): void {
    for (const parent of [...this.#open.keys()]) this.close(parent);
  }

  /** Any other event of the agent, or of the same subagent, ends its block. */
  close(parent: string | undefined): void {
    const open = this.#open.get(parent);
    if (open === undefined) return;
    this.#open.delete(parent);
    this.emit({ type: open.kind === "message" ? "message_end" : "thought_end", id: open.id });
  }
}
