import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type {
  ConnectionDecision,
  ModelFailure,
  ModelUsage,
  ModelUse,
  NetworkBoundary,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { listening } from "@ambit/fakes/listening";
import { onTestFinished } from "vitest";
import { configSchema } from "../../src/config.js";
import { HeldBytes } from "../../src/request/read-body.js";
import { openRoute } from "../../src/route.js";

export const key = "sk-real-0123456789abcdef";

/** A server on loopback; its origin. */
export async function serving(
  listener: RequestListener,
  tls?: { readonly key: string; readonly cert: string },
): Promise<string> {
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  const port = await listening(server, onTestFinished);
  return `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
}

export function useOf(changes: Partial<ModelUse> = {}): ModelUse {
  return {
    protocol: "anthropic",
    endpoint: "http://127.0.0.1:1",
    basePath: "",
    credentials: { ANTHROPIC_API_KEY: key },
    headers: {},
    model: "m-1",
    auxiliaryModels: [],
    ...changes,
  };
}

/** A route to an endpoint, with the reports to its run. */
export function routeTo(
  use: ModelUse,
  config: object = {},
  lookup?: Lookup,
  mode: NetworkBoundary["mode"] = "off",
) {
  const parsed = configSchema.parse(config);
  const held = new HeldBytes(parsed.limits.heldBytes);
  const usage: ModelUsage[] = [];
  const ends: (ModelFailure | undefined)[] = [];
  /** Where an answer ended at the limit of its length. */
  const stops: ("max_tokens" | undefined)[] = [];
  const decisions: ConnectionDecision[] = [];
  const closing = new AbortController();
  const { route, close } = openRoute(use, {
    config: parsed,
    held,
    lookup,
    scope: {
      signal: closing.signal,
      admit: async () => ({ allowed: true }),
      begin: () => ({
        used: (one) => void usage.push(one),
        ended: (end, stop) => {
          ends.push(end);
          stops.push(stop);
        },
      }),
      onDecision: (decision) => void decisions.push(decision),
      boundary: { network: { mode, rules: [] } },
    },
  });
  onTestFinished(close);
  const send = (
    body: string | ReadableStream = JSON.stringify({ model: use.model }),
    path = "/v1/messages",
    init: RequestInit = {},
  ) =>
    route.handle(
      new Request(`http://127.0.0.1${path}`, {
        method: "POST",
        body,
        duplex: "half",
        ...init,
      } as RequestInit),
    );
  const total = () => ({
    input: usage.reduce((sum, { input }) => sum + input, 0),
    cached: usage.reduce((sum, { cached }) => sum + cached, 0),
    cacheWritten: usage.reduce((sum, { cacheWritten = 0 }) => sum + cacheWritten, 0),
    output: usage.reduce((sum, { output }) => sum + output, 0),
    reasoning: usage.reduce((sum, { reasoning = 0 }) => sum + reasoning, 0),
    cost: usage.reduce((sum, { cost = 0 }) => sum + cost, 0),
  });
  return { send, total, usage, ends, stops, decisions, held, closing };
}
