import type { Boundary } from "@ambit/core/plugin";
import { whyForbidden } from "./address-policy.js";
import { admit } from "./admission.js";
import type { CallbackConfig } from "./config.js";
import { AddressRefused, Connections, type Lookup } from "./connections.js";
import { literalAddress } from "./destination.js";
import { type Answer, exchange, type Posting } from "./exchange.js";

/** The only door of this plugin to the network: whatever leaves by it is held to the run's boundary. */
export class Outbound {
  readonly #config: CallbackConfig;
  readonly #connections: Connections;

  constructor(config: CallbackConfig, lookup?: Lookup) {
    this.#config = config;
    this.#connections = new Connections(lookup);
  }

  /** @throws AddressRefused before a connection is made; else whatever the connection, or the signal, failed with. */
  async send(posting: Posting, boundary: Boundary, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    const admission = admit(posting.url, boundary, this.#config);
    if (!admission.admitted) throw new AddressRefused(admission.reason);
    // A name is checked when it is resolved; an address never is.
    const address = literalAddress(posting.url);
    const forbidden = address === undefined ? undefined : whyForbidden(admission.addresses, address);
    if (forbidden !== undefined) throw new AddressRefused(`${address} ${forbidden}`);
    return await exchange(posting, this.#connections.under(admission.addresses), signal);
  }

  /** Ends every connection; calls under way fail. Idle connections keep no process alive, so a runner needn't. */
  async close(): Promise<void> {
    await this.#connections.close();
  }
}
