import type { Socket } from "node:net";
import type { Share } from "./shared-budget.js";

/** Why a connection isn't served. */
export interface Refused {
  readonly reason: string;
  /** Since the last admitted connection, so that a client that keeps trying causes one record, not thousands. */
  readonly isFirst: boolean;
}

/** Limits one session's clients to the session's own limit and its share of the server's. */
export class ClientAdmission {
  readonly #limit: number;
  readonly #share: Share;
  #open = 0;
  #isRefusing = false;

  constructor(limit: number, share: Share) {
    this.#limit = limit;
    this.#share = share;
  }

  /** @returns undefined for a client that is admitted; it counts until it is closed. */
  admit(client: Socket): Refused | undefined {
    const full = this.#open >= this.#limit;
    if (full || !this.#share.take()) {
      const isFirst = !this.#isRefusing;
      this.#isRefusing = true;
      const reason = full
        ? `this session has ${this.#limit} connections open already`
        : "the server has reached its limit of open connections";
      return { reason, isFirst };
    }
    this.#isRefusing = false;
    this.#open += 1;
    client.once("close", () => {
      this.#open -= 1;
      this.#share.release();
    });
    return undefined;
  }

  close(): void {
    this.#share.leave();
  }
}
