import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, type Dispatcher } from "undici";
import { type AddressPolicy, whyForbidden } from "./address-policy.js";

/** `dns.lookup` for all addresses of a name; tests put their own names in its place. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** The name leads only to addresses that the run's boundary, or the deployer, keeps closed. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

const mostAgents = 64;

/**
 * Kept-alive connections, apart for each address policy: a connection that one run's policy let through is never
 * reused under a stricter one. A name is resolved once per connection, and the address that was checked is dialled.
 */
export class Connections {
  readonly #agents = new Map<string, Agent>();
  readonly #lookup: Lookup;

  constructor(lookup: Lookup = systemLookup) {
    this.#lookup = lookup;
  }

  under(policies: readonly AddressPolicy[]): Dispatcher {
    const key = JSON.stringify(
      policies.map(({ privateHosts, ranges }) => [privateHosts, [...ranges].sort()]),
    );
    const agent = this.#agents.get(key) ?? this.#open(policies);
    // Moved to the end: the map's order is the order of use.
    this.#agents.delete(key);
    this.#agents.set(key, agent);
    this.#dropOldest();
    return agent;
  }

  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  #open(policies: readonly AddressPolicy[]): Agent {
    // The tool's own time limit governs: undici's would end a long tool after five minutes.
    return new Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { lookup: guarded(policies, this.#lookup) },
    });
  }

  #dropOldest(): void {
    const [oldest] = this.#agents;
    if (oldest === undefined || this.#agents.size <= mostAgents) return;
    this.#agents.delete(oldest[0]);
    // Waits for the calls under way; they report their own failures.
    oldest[1].close(() => undefined);
  }
}

function guarded(policies: readonly AddressPolicy[], lookup: Lookup): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const refusals = addresses.map(({ address }) => whyForbidden(policies, address));
      const permitted = addresses.filter((_, index) => refusals[index] === undefined);
      const [first] = permitted;
      if (first === undefined) {
        const why = [...new Set(refusals)].join(", ");
        return callback(new AddressRefused(`${hostname} leads to what ${why || "is no address"}`), []);
      }
      return options.all === true ? callback(null, permitted) : callback(null, first.address, first.family);
    });
  };
}
