import type { IncomingMessage } from "node:http";
import {
  type ActorGap,
  type ModelExchange,
  type ModelGatewayScope,
  type ModelUsage,
  type ModelUse,
  PluginBrokeContract,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import { type Lookup, Replacements, replaceIn, replacementsFor, StreamReplacer } from "@ambit/egress";
import { HttpClient } from "@ambit/egress/client";
import type { ModelRouteConfig } from "./config.js";
import { hostOf, upstreamUrl, whyAddressClosed } from "./endpoint.js";
import { allowedModels, isAllowed, priceOf } from "./models.js";
import { protocols } from "./protocols/index.js";
import {
  type Authorization,
  type GuardOf,
  isRefusal,
  type ModelOperation,
  type Protocol,
  type SignedRequest,
} from "./protocols/protocol.js";
import { passedHeaders, passedResponseHeaders } from "./request/headers.js";
import {
  askingForUsage,
  BodyRefused,
  type HeldBytes,
  maxUsage,
  type ReadBody,
  readBody,
} from "./request/read-body.js";
import { beyondModel } from "./request/shapes/index.js";
import {
  failedConnection,
  failedResponse,
  NotAuthorized,
  ownAnswer,
  shortLine,
  unfinishedAnswer,
} from "./response/failures.js";
import { Meter, type MeterOptions } from "./response/meter.js";
import { relay } from "./response/relay.js";

/** One agent's connection to its model: the operations that it may use, and nothing else. */
class AgentModelRoute {
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

interface RouteOptions {
  readonly use: ModelUse;
  readonly protocol: Protocol;
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly client: HttpClient;
  readonly guardOf: GuardOf;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}

interface Sent {
  readonly request: Request;
  readonly operation: ModelOperation;
  /** Undefined for a request without one. */
  readonly body: ReadBody | undefined;
  readonly model: string;
  /** Undefined for a request without a body. */
  readonly max: ModelUsage | undefined;
  readonly exchange: ModelExchange;
  /** Aborts when the agent leaves, and when the route is closed. */
  readonly signal: AbortSignal;
  /** Called once, when the answer is over. */
  over(): void;
}

type SendingOptions = Pick<RouteOptions, "use" | "protocol" | "config" | "client" | "guardOf">;

/** The secret ones of an authorization's headers: a signature covers others too. */
const secretHeaders: readonly string[] = [
  "authorization",
  "api-key",
  "x-api-key",
  "x-goog-api-key",
  "x-amz-security-token",
];

/** A shorter value can't be distinguished from other text. */
const minSecretLength = 8;

/** Sends an admitted request with the real credential, and passes the response back. */
class Sending {
  readonly #options: SendingOptions;
  readonly #authorization: Authorization | undefined;
  /** The last request's secrets, since most credentials are the same for each. */
  #known: { readonly key: string; readonly replacements: Replacements } | undefined;

  constructor(options: SendingOptions) {
    this.#options = options;
    this.#authorization = options.protocol.authorization(options.use, options.guardOf);
  }

  /** Never throws. */
  async send(sent: Sent): Promise<Response> {
    const { operation, exchange, signal, over } = sent;
    const { use, client } = this.#options;
    const url = upstreamUrl(use, operation.path, operation.query);
    let answer: IncomingMessage;
    let credential: Readonly<Record<string, string>>;
    try {
      const content = this.#content(sent);
      const headers = this.#headers(sent, content);
      const method = sent.request.method;
      const unsigned = { method, url, headers, body: content };
      credential = await this.#authorize(unsigned);
      const signed = {
        ...unsigned,
        method: method === "GET" ? "GET" : "POST",
        headers: { ...headers, ...credential },
      };
      answer = await client.send(signed, { signal });
    } catch (error) {
      over();
      if (signal.aborted) {
        // It may have been sent: an agent that leaves before the first byte is charged for its request, as far as is
        // known.
        const unanswered = this.#meter(sent, { contentType: "", isFine: true });
        if (operation.kind === "generate") unanswered.end(false);
        exchange.ended();
        return ownAnswer(499, "the request was cancelled");
      }
      const failure = failedConnection(error, url.host, false);
      exchange.ended(failure);
      return ownAnswer(502, failure.message);
    }
    return this.#pass(answer, { ...sent, credential });
  }

  #meter({ model, exchange, body, max }: Sent, answer: Pick<MeterOptions, "contentType" | "isFine">): Meter {
    const { protocol, config, use } = this.#options;
    const names = [new URL(use.endpoint).hostname, hostOf(use)];
    const price = priceOf(model, config.prices);
    return new Meter({
      protocol,
      model,
      price,
      exchange,
      requestBytes: body?.size ?? 0,
      maxOutput: max?.output,
      isWithoutFinish: config.withoutFinishReason.some((host) => names.includes(host.toLowerCase())),
      ...answer,
    });
  }

  async #authorize(unsigned: SignedRequest): Promise<Readonly<Record<string, string>>> {
    try {
      return (await this.#authorization?.headers(unsigned)) ?? {};
    } catch (error) {
      throw new NotAuthorized("the credential couldn't be used", { cause: error });
    }
  }

  /** Composed of what was decided on, never the agent's own text. */
  #content({ operation, body }: Sent): Buffer | undefined {
    if (body === undefined || operation.kind === "list") return undefined;
    const asksForUsage =
      this.#options.config.requestStreamUsage && operation.path.endsWith("/chat/completions");
    return Buffer.from(JSON.stringify(asksForUsage ? askingForUsage(body) : body.value));
  }

  #headers({ request }: Sent, content: Buffer | undefined): Record<string, string> {
    const { protocol, use } = this.#options;
    return {
      ...protocol.headers?.(use),
      ...passedHeaders(request.headers, protocol.requestHeaders),
      ...lowerCased(use.headers),
      // Usage couldn't be read, nor a credential found, in a compressed response.
      "accept-encoding": "identity",
      ...(content === undefined ? {} : { "content-length": String(content.length) }),
    };
  }

  #pass(
    answer: IncomingMessage,
    sent: Sent & { readonly credential: Readonly<Record<string, string>> },
  ): Response {
    const { exchange, over } = sent;
    const { statusCode = 0, headers } = answer;
    const refused = whyUnusable(statusCode, headers["content-encoding"]);
    if (refused !== undefined) {
      answer.destroy();
      over();
      exchange.ended({ status: statusCode, retryable: false, message: refused });
      return ownAnswer(502, refused);
    }
    if (statusCode === 401) this.#authorization?.refused?.(sent.credential);
    const replacements = this.#replacements(sent.credential);
    const contentType = headers["content-type"] ?? "";
    const isFine = statusCode < 300;
    const meter = this.#meter(sent, { contentType, isFine });
    const stream = relay(answer, {
      replacer: new StreamReplacer(replacements),
      signal: sent.signal,
      onBytes: (bytes) => meter.push(bytes),
      onEnd: (how) => {
        over();
        const { finish } = meter;
        const isFinished = finish === "whole" || finish === "max_tokens";
        // A failure isn't charged.
        if (isFine) meter.end(how === "whole");
        if (how !== "left" && how !== "whole") return exchange.ended(failedConnection(how.failed, "", true));
        const words = replaceIn(meter.error ?? "", replacements, "utf8");
        if (how === "whole" && !isFine) return exchange.ended(failedResponse(statusCode, words));
        const missing = finish === "open" ? this.#options.protocol.maySkip?.(sent.operation.path) : undefined;
        if (how === "whole" && !isFinished) return exchange.ended(unfinishedAnswer(words, missing));
        exchange.ended(undefined, finish === "max_tokens" ? "max_tokens" : undefined);
      },
    });
    const passed = passedResponseHeaders(headers, (text) => replaceIn(text, replacements, "utf8"));
    // Otherwise servers that adapt a handler wait briefly for the end, to send the length with the first byte.
    passed.set("transfer-encoding", "chunked");
    return new Response(stream, { status: statusCode, headers: passed });
  }

  #replacements(credential: Readonly<Record<string, string>>): Replacements {
    const values = [
      ...Object.values(this.#options.use.credentials),
      // Also what follows a scheme, such as `Bearer`: a server may repeat that part alone.
      ...Object.values(this.#options.use.headers).flatMap((value) => [value, value.replace(/^\S+\s+/, "")]),
    ];
    const sent = Object.entries(credential).flatMap(([name, value]) =>
      secretHeaders.includes(name) ? [value.replace(/^Bearer /, "")] : [],
    );
    const secrets = [...new Set([...values, ...sent])].filter((value) => value.length >= minSecretLength);
    const key = secrets.join("\n");
    if (this.#known?.key !== key) {
      const list = secrets.flatMap((value) => replacementsFor(value, "*"));
      this.#known = { key, replacements: new Replacements(list) };
    }
    return this.#known.replacements;
  }
}

function whyUnusable(status: number, encoding: string | undefined): string | undefined {
  if (status >= 300 && status < 400)
    return `the model answered with a redirect (${status}), which is never followed`;
  if (status < 200 || status > 599) return `the model answered with an unusable status (${status})`;
  if (encoding === undefined || encoding === "identity") return undefined;
  return "the model compressed its answer, although it was asked not to";
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
