import {
  type ActorGap,
  type ModelExchange,
  type ModelGatewayScope,
  type ModelUsage,
  type ModelUse,
  PluginBrokeContract,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { HttpClient } from "@ambit/egress/client";
import type { ModelRouteConfig } from "./config.js";
import { allowedModels, isAllowed, priceOf } from "./models.js";
import { protocols } from "./protocols/index.js";
import { isRefusal, type ModelOperation } from "./protocols/protocol.js";
import type { HeldBytes } from "./request/held-bytes.js";
import { BodyRefused, type ReadBody, readBody } from "./request/read-body.js";
import { beyondModel } from "./request/shapes/index.js";
import { maxUsage } from "./request/usage.js";
import { ownAnswer, shortLine } from "./response/failures.js";
import type { RouteOptions } from "./route-options.js";
import { hostOf, whyAddressClosed } from "./upstream/endpoint.js";
import { Sending } from "./upstream/sending.js";

/** One agent's connection to its model: the operations that it may use, and nothing else. */
export class AgentModelRoute {
  readonly #options: RouteOptions;
  readonly #models: readonly string[];
  readonly #host: string;
  readonly #sending: Sending;
  /** Whether a request may not ask the provider for what the boundary doesn't allow. */
  readonly #isHeld: boolean;
  #underWay = 0;

  constructor(options: RouteOptions) {
    this.#options = options;
    this.#models = allowedModels(options.use, options.config.models);
    this.#host = hostOf(options.use);
    this.#sending = new Sending(options);
    const { mode } = options.scope.boundary.network;
    this.#isHeld = mode !== "on" && !options.config.allowProviderTools;
  }

  /** Answers one request of the agent. Never throws. */
  readonly handle = async (request: Request): Promise<Response> => {
    const { limits } = this.#options.config;
    if (this.#underWay >= limits.concurrentRequests) {
      return ownAnswer(429, `${limits.concurrentRequests} requests are already in progress`, {
        "retry-after": "1",
      });
    }
    this.#underWay += 1;
    let isOver = false;
    const over = () => {
      if (!isOver) this.#underWay -= 1;
      isOver = true;
    };
    try {
      return await this.#answer(request, over);
    } catch (error) {
      over();
      if (error instanceof BodyRefused)
        return ownAnswer(error.status, `the request is refused: ${error.message}`);
      return ownAnswer(502, "the request could not be carried");
    }
  };

  /** @param over called when the request and its response are finished. */
  async #answer(request: Request, over: () => void): Promise<Response> {
    const { protocol, use, scope } = this.#options;
    const { pathname, searchParams } = new URL(request.url);
    const line = { method: request.method, pathname, search: searchParams };
    const operation = protocol.read(line, use);
    if (isRefusal(operation)) {
      over();
      // A client that tries a WebSocket first violates nothing.
      if (operation.status !== 426) this.#decided(false, `${called(line)}: ${operation.reason}`);
      return ownAnswer(operation.status, `${called(line)} is refused: ${operation.reason}`);
    }
    const held = this.#options.held.share();
    try {
      const signal = AbortSignal.any([request.signal, scope.signal]);
      const body = await readBody(request, this.#options.config.limits, held, signal);
      const model = modelOf(operation, body);
      const max = body === undefined ? undefined : this.#maxUsage(model, body);
      const refusal = await this.#whyRefused(operation, body, max, signal);
      if (refusal !== undefined) {
        over();
        return refusal;
      }
      this.#decided(true, `the model route carries ${line.method} ${operation.path}`);
      const exchange: ModelExchange =
        operation.kind === "generate" ? scope.begin(model, max) : { used: () => {}, ended: () => {} };
      return await this.#sending.send({ request, operation, body, model, max, exchange, signal, over });
    } finally {
      held.giveBack();
    }
  }

  /** The model must be one of the run's, and its budget must not be spent. */
  async #whyRefused(
    operation: ModelOperation,
    body: ReadBody | undefined,
    max: ModelUsage | undefined,
    signal: AbortSignal,
  ): Promise<Response | undefined> {
    if (operation.kind === "list") return undefined;
    const model = modelOf(operation, body);
    if (!isAllowed(model, this.#models)) {
      const named = model === "" ? "no readable model name" : `the model '${shortLine(model).slice(0, 100)}'`;
      const reason = `it names ${named}, but this run's model is '${this.#options.use.model}'`;
      this.#decided(false, `the model route refuses a request: ${reason}`);
      return ownAnswer(403, `the request is refused: ${reason}`);
    }
    const { protocol } = this.#options.use;
    const beyond = this.#isHeld ? await beyondModel(protocol, operation.path, body?.value ?? {}) : undefined;
    if (beyond !== undefined) {
      const reason = `it ${beyond}`;
      this.#decided(false, `the model route refuses a request: ${reason}`, this.#beyondBoundary(beyond));
      return ownAnswer(403, `the request is refused: ${reason}`);
    }
    if (operation.kind !== "generate") return undefined;
    const admission = await this.#options.scope.admit(model, signal, max);
    if (admission.allowed) return undefined;
    this.#decided(false, `the model route refuses a request: ${admission.reason}`);
    return ownAnswer(admission.status, admission.reason);
  }

  #maxUsage(model: string, body: ReadBody): ModelUsage {
    return maxUsage(model, body, priceOf(model, this.#options.config.prices));
  }

  #beyondBoundary(what: string): ActorGap {
    const { mode } = this.#options.scope.boundary.network;
    return {
      capability: mode === "off" ? "network.deny" : "network.allow-host",
      reason: `a request of the agent to its model ${what} (network.mode "${mode}")`,
      fix: `deny the agent's tool that needs it by a permission rule, set sandboxPermission.network to "on", or set allowProviderTools in the configuration of model-route`,
    };
  }

  #decided(allowed: boolean, reason: string, gap?: ActorGap): void {
    const decision = { target: this.#host, allowed, reason };
    this.#options.scope.onDecision(gap === undefined ? decision : { ...decision, gap });
  }
}

function modelOf(operation: ModelOperation, body: ReadBody | undefined): string {
  return operation.model ?? body?.model ?? "";
}

function called({ method, pathname }: { readonly method: string; readonly pathname: string }): string {
  return `${method} ${shortLine(pathname).slice(0, 100)}`;
}

interface OpenRouteOptions {
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly lookup: Lookup | undefined;
  readonly upstreamProxy?: UpstreamProxy | undefined;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}

/** A route with separate connections. `close` ends every open request. */
export function openRoute(
  use: ModelUse,
  { config, held, lookup, upstreamProxy, scope }: OpenRouteOptions,
): { readonly route: AgentModelRoute; close(): void } {
  const protocol = protocols[use.protocol];
  if (protocol === undefined)
    throw new PluginBrokeContract(`The model route doesn't support ${use.protocol}.`);
  const guardOf = (url: URL) => ({
    whyClosed: (address: string) => whyAddressClosed(url, address, config),
    lookup,
    upstreamProxy,
  });
  const { connectMs, firstByteMs, idleMs: silenceMs } = config.limits;
  const client = new HttpClient(guardOf(new URL(use.endpoint)), { connectMs, firstByteMs, silenceMs });
  const route = new AgentModelRoute({ use, protocol, config, held, client, guardOf, scope });
  return { route, close: () => client.close() };
}
