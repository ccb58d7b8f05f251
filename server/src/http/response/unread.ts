/** Characters of large texts that may wait for their readers at one time. */
const maxUnread = 64 * 1024 * 1024;
/** Texts up to this length don't count: a reader's page of a log. */
const pageLength = 131_072;

interface Held {
  readonly length: number;
  giveUp(): void;
}

/**
 * Large texts that wait for their readers, such as results. Beyond the limit, the reader that has taken longest is given up:
 * slow readers only displace each other. A stored result can be read again.
 */
export class UnreadTexts {
  /** In the order of their start. */
  readonly #held = new Set<Held>();
  #length = 0;

  constructor(readonly max = maxUnread) {}

  /**
   * @param giveUp ends the reader's connection.
   * @returns what is called when the text was read, or its reader has left.
   */
  hold(length: number, giveUp: () => void): () => void {
    if (length <= pageLength) return () => {};
    const held: Held = { length, giveUp };
    this.#held.add(held);
    this.#length += length;
    while (this.#length > this.max && this.#held.size > 1) {
      const [oldest] = this.#held;
      if (oldest === undefined) break;
      this.#release(oldest);
      oldest.giveUp();
    }
    return () => this.#release(held);
  }

  #release(held: Held): void {
    if (this.#held.delete(held)) this.#length -= held.length;
  }
}
