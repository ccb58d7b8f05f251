import type { UpstreamProxy } from "@ambit/core/plugin";
import { type Lookup, whyForbidden } from "@ambit/egress";
import { guardedDispatcher } from "@ambit/egress/dispatcher";
import { LRUCache } from "lru-cache";
import type { Dispatcher } from "undici";
import type { OpenRoute } from "./route.js";

const maxAgents = 64;

/**
 * Kept-alive connections, apart for each address policy and port: a connection that one run's policy let through is
 * never reused under a stricter one. A name is resolved once per connection, and the address that was checked is dialled.
 */
export class CallbackConnections {
  readonly #agents = new LRUCache<string, Dispatcher, OpenRoute>({
    max: maxAgents,
    memoMethod: (_key, _stale, { context: { policies } }) =>
      // The tool's own time limit governs: undici's would end a long tool after five minutes.
      guardedDispatcher(
        {
          whyClosed: (address, port) => whyForbidden(policies, address, port),
          lookup: this.lookup,
          upstreamProxy: this.upstreamProxy,
        },
        { headersTimeout: 0, bodyTimeout: 0 },
      ),
    // Waits for the open calls; they report their own failures.
    dispose: (agent, _key, reason) => reason === "evict" && agent.close(() => undefined),
  });

  constructor(
    readonly lookup?: Lookup,
    readonly upstreamProxy?: UpstreamProxy,
  ) {}

  along(route: OpenRoute): Dispatcher {
    return this.#agents.memo(route.key, { context: route });
  }

  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }
}
