import { guardedLookup, type Lookup, whyForbidden } from "@ambit/egress";
import { Agent, type Dispatcher } from "undici";
import type { OpenRoute } from "./route.js";

const maxAgents = 64;

/**
 * Kept-alive connections, apart for each address policy and port: a connection that one run's policy let through is
 * never reused under a stricter one. A name is resolved once per connection, and the address that was checked is dialled.
 */
export class CallbackConnections {
  readonly #agents = new Map<string, Agent>();
  readonly #lookup: Lookup | undefined;

  constructor(lookup?: Lookup) {
    this.#lookup = lookup;
  }

  along(route: OpenRoute): Dispatcher {
    const { key } = route;
    const agent = this.#agents.get(key) ?? this.#open(route);
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

  #open({ policies, port }: OpenRoute): Agent {
    // The tool's own time limit governs: undici's would end a long tool after five minutes.
    return new Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { lookup: guardedLookup((address) => whyForbidden(policies, address, port), this.#lookup) },
    });
  }

  #dropOldest(): void {
    const [oldest] = this.#agents;
    if (oldest === undefined || this.#agents.size <= maxAgents) return;
    this.#agents.delete(oldest[0]);
    // Waits for the open calls; they report their own failures.
    oldest[1].close(() => undefined);
  }
}
