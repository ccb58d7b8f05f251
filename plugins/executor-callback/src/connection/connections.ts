import { guardedLookup, type Lookup, whyForbidden } from "@ambit/egress";
import { LRUCache } from "lru-cache";
import { Agent, type Dispatcher } from "undici";
import type { OpenRoute } from "./route.js";

const maxAgents = 64;

/**
 * Kept-alive connections, apart for each address policy and port: a connection that one run's policy let through is
 * never reused under a stricter one. A name is resolved once per connection, and the address that was checked is dialled.
 */
export class CallbackConnections {
  readonly #agents = new LRUCache<string, Agent, OpenRoute>({
    max: maxAgents,
    memoMethod: (_key, _stale, { context }) => this.#open(context),
    // Waits for the open calls; they report their own failures.
    dispose: (agent, _key, reason) => reason === "evict" && agent.close(() => undefined),
  });
  readonly #lookup: Lookup | undefined;

  constructor(lookup?: Lookup) {
    this.#lookup = lookup;
  }

  along(route: OpenRoute): Dispatcher {
    return this.#agents.memo(route.key, { context: route });
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
}
