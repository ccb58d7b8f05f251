import type { Boundary, ToolScope, UpstreamProxy } from "@ambit/core/plugin";
import { AddressRefused, type Lookup } from "@ambit/egress";
import type { CallbackConfig } from "../config.js";
import { CallbackConnections } from "./connections.js";
import { exchange } from "./exchange.js";
import { checkedLast } from "./last-check.js";
import type { CallbackResponse, Posting } from "./posting.js";
import { type OriginRoute, routeTo } from "./route.js";

/** The plugin's only way to the network: enforces the run's boundary on every connection. */
export class Outbound {
  readonly #config: CallbackConfig;
  readonly #connections: CallbackConnections;
  /** By boundary and origin: a run's calls all go the same way, and judging it anew costs as much as the call. */
  readonly #routes = new WeakMap<Boundary, Map<string, OriginRoute>>();

  constructor(config: CallbackConfig, lookup?: Lookup, upstreamProxy?: UpstreamProxy) {
    this.#config = config;
    this.#connections = new CallbackConnections(lookup, upstreamProxy);
  }

  /**
   * @param mayAct asked last, before a request leaves.
   * @throws AddressRefused before a connection is made, NotSent; else the error of the connection or the signal.
   */
  async send(
    posting: Posting,
    { boundary, signal, mayAct }: Pick<ToolScope, "boundary" | "signal" | "mayAct">,
  ): Promise<CallbackResponse> {
    signal.throwIfAborted();
    const route = this.#route(posting.url, boundary);
    if (!route.open) throw new AddressRefused(route.reason);
    return await exchange(
      posting,
      checkedLast(this.#connections.along(route), mayAct),
      signal,
      this.#config.maxAnswerBytes,
    );
  }

  /** Closes every connection; open calls fail. Optional for a runner: idle connections keep no process alive. */
  async close(): Promise<void> {
    await this.#connections.close();
  }

  #route(url: URL, boundary: Boundary): OriginRoute {
    let routes = this.#routes.get(boundary);
    if (routes === undefined) {
      routes = new Map();
      this.#routes.set(boundary, routes);
    }
    const known = routes.get(url.origin);
    if (known !== undefined) return known;
    const route = routeTo(url, boundary, this.#config);
    routes.set(url.origin, route);
    return route;
  }
}
