import type { ServerResponse } from "node:http";
import { callerOf, shareOf } from "../../tenants/caller.js";

/** Characters of large texts that may wait for their readers at one time. */
const maxUnread = 64 * 1024 * 1024;
/** Texts up to this length don't count: a reader's page of a log. */
const pageLength = 131_072;

export interface Reader {
  /** By its share of memory. Undefined for the operator. */
  readonly tenant: string | undefined;
  /** Ends the reader's connection. */
  giveUp(): void;
}

/** Who reads this response. */
export function readerOf(response: ServerResponse): Reader {
  return { tenant: shareOf(callerOf(response.req)), giveUp: () => response.destroy() };
}

interface Held extends Reader {
  readonly length: number;
}

/**
 * Large texts that wait for their readers, such as results. Beyond the limit, the tenant with the most of them loses the
 * one that has taken longest: slow readers only displace each other, and a tenant's many first of all its own. A stored result
 * can be read again.
 */
export class UnreadTexts {
  /** In the order of their start. */
  readonly #held = new Set<Held>();
  readonly #lengths = new Map<string | undefined, number>();
  #length = 0;

  constructor(readonly max = maxUnread) {}

  /** @returns what is called when the text was read, or its reader has left. */
  hold(length: number, { tenant, giveUp }: Reader): () => void {
    if (length <= pageLength) return () => {};
    const held: Held = { length, tenant, giveUp };
    this.#held.add(held);
    this.#count(tenant, length);
    while (this.#length > this.max) {
      const displaced = this.#oldestOfLargest(held);
      if (displaced === undefined) break;
      this.#release(displaced);
      displaced.giveUp();
    }
    return () => this.#release(held);
  }

  /** Of the tenants that hold another text than the new one. Undefined if none does. */
  #oldestOfLargest(added: Held): Held | undefined {
    let found: Held | undefined;
    for (const held of this.#held) {
      if (held === added) continue;
      if (found === undefined || this.#lengthOf(held) > this.#lengthOf(found)) found = held;
    }
    return found;
  }

  #lengthOf({ tenant }: Held): number {
    return this.#lengths.get(tenant) ?? 0;
  }

  #count(tenant: string | undefined, by: number): void {
    this.#length += by;
    const length = (this.#lengths.get(tenant) ?? 0) + by;
    if (length === 0) this.#lengths.delete(tenant);
    else this.#lengths.set(tenant, length);
  }

  #release(held: Held): void {
    if (this.#held.delete(held)) this.#count(held.tenant, -held.length);
  }
}
