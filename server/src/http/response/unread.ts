import type { ServerResponse } from "node:http";
import { callerOf, shareOf } from "../../tenants/caller.js";

/** Characters of large texts that may wait for their readers at one time. */
const maxUnread = 64 * 1024 * 1024;
/** Texts up to this length don't count: a reader's page of a log. */
const pageLength = 131_072;

interface HeldText {
  readonly length: number;
  /** Whose share of memory it takes. Undefined: the operator's. */
  readonly tenant: string | undefined;
  readonly response: ServerResponse;
}

/**
 * Large texts that wait for their readers, such as results. Beyond the limit, the tenant with the most of them loses the
 * one that has taken longest: slow readers only displace each other, and a tenant's many first of all its own. A stored result
 * can be read again.
 */
export class UnreadTexts {
  /** The set keeps the order in which they began. */
  readonly #held = new Set<HeldText>();

  constructor(readonly max = maxUnread) {}

  /** Counts a text until it is disposed of, because its reader has it or has left. The response of a displaced text is destroyed. */
  hold(length: number, response: ServerResponse): Disposable {
    if (length <= pageLength) return { [Symbol.dispose]: () => undefined };
    const held: HeldText = { length, response, tenant: shareOf(callerOf(response.req)) };
    this.#held.add(held);
    for (let text = this.#displacedBy(held); text !== undefined; text = this.#displacedBy(held)) {
      this.#held.delete(text);
      text.response.destroy();
    }
    return { [Symbol.dispose]: () => void this.#held.delete(held) };
  }

  /** Each of them is longer than a page, so that there are few. */
  #displacedBy(added: HeldText): HeldText | undefined {
    const lengths = new Map<string | undefined, number>();
    let total = 0;
    for (const { tenant, length } of this.#held) {
      lengths.set(tenant, (lengths.get(tenant) ?? 0) + length);
      total += length;
    }
    if (total <= this.max) return undefined;
    const lengthOf = ({ tenant }: HeldText) => lengths.get(tenant) ?? 0;
    const others = [...this.#held].filter((held) => held !== added);
    return others.reduce<HeldText | undefined>(
      (largest, held) => (largest !== undefined && lengthOf(largest) >= lengthOf(held) ? largest : held),
      undefined,
    );
  }
}
