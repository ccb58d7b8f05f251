import type { IncomingMessage } from "node:http";
import type { ModelExchange, ModelUsage } from "@ambit/core/plugin";
import { Replacements, replaceIn, replacementsFor, StreamReplacer } from "@ambit/egress";
import { priceOf } from "../models.js";
import type { Authorization, ModelOperation, SignedRequest } from "../protocols/protocol.js";
import { passedHeaders, passedResponseHeaders } from "../request/headers.js";
import type { ReadBody } from "../request/read-body.js";
import { askingForUsage } from "../request/usage.js";
import {
  failedConnection,
  failedResponse,
  NotAuthorized,
  ownAnswer,
  unfinishedAnswer,
} from "../response/failures.js";
import { Meter, type MeterOptions } from "../response/meter.js";

import { relay } from "../response/relay.js";
import type { RouteOptions } from "../route-options.js";
import { hostOf, upstreamUrl } from "./endpoint.js";

export interface Sent {
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
export class Sending {
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
