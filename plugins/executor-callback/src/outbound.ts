import type { IncomingMessage } from "node:http";
import {
  type Boundary,
  formatRule,
  messageOf,
  readText,
  type ToolScope,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import {
  type AddressPolicy,
  AddressRefused,
  addressesOfThisHost,
  allowsDestination,
  type Lookup,
  operatorPolicy,
  portOf,
  rangeOf,
  whyForbidden,
  whyUrlForbidden,
} from "@ambit/egress";
import { HttpClient } from "@ambit/egress/client";
import { LRUCache } from "lru-cache";
import type { CallbackConfig } from "./config.js";

/** Clients whose connections are kept, one for each address policy and port. */
const maxClients = 64;
/** Bytes of an error's text that are read: what it says to a model is short, and comes as one JSON. */
const maxErrorBodyBytes = 64 * 1024;
/** Milliseconds to wait for the text of an error: its status is already known. */
const rejectionWaitMs = 1_000;

/** The plugin's only way to the network: enforces the run's boundary on every connection. */
export class Outbound {
  readonly #config: CallbackConfig;
  /**
   * There is one for each address policy and port: a connection that one run's policy let through is never reused under a stricter
   * one.
   */
  readonly #clients: LRUCache<string, HttpClient, OpenRoute>;
  /** How each origin is reached, by the boundary: a run's calls all go the same way, and judging it anew costs as much as the call. */
  readonly #routes = new WeakMap<Boundary, Map<string, OriginRoute>>();

  constructor(config: CallbackConfig, lookup?: Lookup, upstreamProxy?: UpstreamProxy) {
    this.#config = config;
    this.#clients = new LRUCache({
      max: maxClients,
      memoMethod: (_key, _stale, { context: { policies } }) =>
        new HttpClient({
          whyClosed: (address, port) => whyForbidden(policies, address, port),
          lookup,
          upstreamProxy,
        }),
    });
  }

  /**
   * Sends a call, and reads its answer. Never follows a redirect.
   *
   * @param mayAct asked last, before a request leaves: the process may have been stopped while it connected.
   * @throws AddressRefused before a connection is made, NotSent; else the error of the connection or the signal.
   */
  async send(
    posting: Posting,
    { boundary, signal, mayAct }: Pick<ToolScope, "boundary" | "signal" | "mayAct">,
  ): Promise<CallbackResponse> {
    signal.throwIfAborted();
    const route = this.#route(posting.url, boundary);
    if (!route.open) throw new AddressRefused(route.reason);
    const response = await this.#clients.memo(route.key, { context: route }).send(posting, {
      signal,
      onConnected: () => {
        if (!mayAct()) throw new NotSent("another process may have the run by now");
      },
    });
    const { statusCode: status = 0, headers } = response;
    if (status >= 200 && status < 300) return await readAnswer(response, this.#config.maxAnswerBytes);
    const { location } = headers;
    return {
      kind: "rejected",
      status,
      ...(location === undefined ? {} : { location }),
      body: await readRejection(response),
    };
  }

  /** Closes every connection; open calls fail. Optional for a runner: idle connections keep no process alive. */
  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #route(url: URL, boundary: Boundary): OriginRoute {
    let routes = this.#routes.get(boundary);
    if (routes === undefined) {
      routes = new Map();
      this.#routes.set(boundary, routes);
    }
    let route = routes.get(url.origin);
    if (route === undefined) {
      route = routeTo(url, boundary, this.#config);
      routes.set(url.origin, route);
    }
    return route;
  }
}

async function readAnswer(response: IncomingMessage, maxAnswerBytes: number): Promise<CallbackResponse> {
  if (Number(response.headers["content-length"]) > maxAnswerBytes) {
    response.destroy();
    return { kind: "too_long" };
  }
  const { text, isWhole } = await readText(response, maxAnswerBytes);
  return isWhole ? { kind: "answered", body: text } : { kind: "too_long" };
}

async function readRejection(response: IncomingMessage): Promise<string> {
  const late = setTimeout(() => response.destroy(), rejectionWaitMs);
  try {
    return (await readText(response, maxErrorBodyBytes)).text;
  } catch (error) {
    return `(its text could not be read: ${messageOf(error)})`;
  } finally {
    clearTimeout(late);
  }
}

/** One request to the platform. */
export interface Posting {
  readonly url: URL;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What came back, read within bounds. */
export type CallbackResponse =
  | { readonly kind: "answered"; readonly body: string }
  /** Not 2xx. The body, as far as it was read, is for the log; of it the model gets its `advice` alone. */
  | {
      readonly kind: "rejected";
      readonly status: number;
      readonly location?: string;
      readonly body: string;
    }
  /** Longer than `maxAnswerBytes`. */
  | { readonly kind: "too_long" };

/** Nothing was sent: the run may belong to another process. */
export class NotSent extends Error {}

interface OpenRoute {
  readonly open: true;
  /** Every one must let an address through. */
  readonly policies: readonly AddressPolicy[];
  readonly port: number;
  /** Equal for routes whose connections may be shared. */
  readonly key: string;
}

/** Whether and how a run may reach an origin. */
type OriginRoute = OpenRoute | { readonly open: false; readonly reason: string };

/** Depends on the URL's origin only, not on its path. Pure. */
export function routeTo(url: URL, boundary: Boundary, config: CallbackConfig): OriginRoute {
  const policies = policiesFor(url, boundary, config);
  if (policies === undefined)
    return { open: false, reason: `${url.host} is not on the run's network allowlist` };
  const reason = whyUrlForbidden(policies, url);
  if (reason !== undefined) return { open: false, reason };
  const port = portOf(url);
  const key = JSON.stringify([
    port,
    policies.map(({ ranges, own }) => [ranges.map(formatRule).sort(), own !== undefined]),
  ]);
  return { open: true, policies, port, key };
}

/**
 * The boundary once more, at the time of the call: the plan let this destination through, and nothing that has
 * happened since may have led the call elsewhere. Undefined for a destination that is refused.
 */
function policiesFor(
  url: URL,
  boundary: Boundary,
  config: CallbackConfig,
): readonly AddressPolicy[] | undefined {
  const operator = operatorPolicy(config);
  const { network, enforcement } = boundary;
  if (network.mode === "on") return [operator];
  if (network.mode === "allowlist" && allowsDestination(network.rules, url))
    return [operator, boundaryPolicy(boundary, config)];
  // Off the list, only "best_effort" can have accepted it, and the receipt names it as outside.
  return enforcement === "best_effort" ? [operator] : undefined;
}

/** The same policy as for a sandbox: a listed name may lead to public addresses, and to others or this host only by a listed range. */
export function boundaryPolicy({ network }: Boundary, { allowedRanges }: CallbackConfig): AddressPolicy {
  const listed = network.rules.filter((rule) => rule.kind === "range");
  return { ranges: [...listed, ...allowedRanges.map(rangeOf)], own: addressesOfThisHost };
}
