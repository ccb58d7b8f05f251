import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import {
  definePlugin,
  type FetchHandler,
  type Issue,
  isJsonObject,
  type JsonObject,
  type ModelGateway,
  type ModelGatewayScope,
  type ModelRoute,
  type ModelUse,
  requireBearer,
} from "@ambit/core/plugin";
import { portOf, Replacements, rangeOf, replacementsFor, StreamReplacer, whyClosed } from "@ambit/egress";
import { openResponse } from "@ambit/egress/client";
import { z } from "zod";
import { type Usage, UsageReader } from "./usage.js";

export const configSchema = z.strictObject({
  /** Private ranges (CIDR) in which a model's endpoint may be. Default: none. */
  privateRanges: z.array(z.union([z.cidrv4(), z.cidrv6()])).default([]),
});
type Config = z.output<typeof configSchema>;

const maxBodyBytes = 32 * 1024 * 1024;
/** Headers of the agent that are passed on, and of the response that come back. All others stay here. */
const passed = {
  there: ["accept", "anthropic-version", "anthropic-beta"],
  back: ["content-type", "retry-after"],
};

/** Carries requests in Anthropic's Messages API: the agent gets a key of this run, and the real one stays outside. */
export class Gateway implements ModelGateway {
  readonly name = "sample";
  readonly site = "runner";
  // A claim on `secrets.hidden` takes a probe that shows it on this host; without one, a run with `secrets: "hidden"` is refused.
  readonly claims = [];

  constructor(readonly config: Config) {}

  touches(): ["network", "secrets"] {
    return ["network", "secrets"];
  }

  gaps() {
    return [];
  }

  async probe() {
    return [];
  }

  /** Why it can't carry this use. Another gateway may. */
  issues({ protocol, endpoint, credentials }: ModelUse): Issue[] {
    if (protocol !== "anthropic")
      return [{ path: "modelConnection.provider", message: `${protocol} isn't supported` }];
    if (!URL.canParse(endpoint))
      return [{ path: "modelConnection.endpoint.baseUrl", message: "isn't a URL" }];
    if (credentials.ANTHROPIC_API_KEY !== undefined) return [];
    return [{ path: "modelConnection.credentials", message: "must have ANTHROPIC_API_KEY" }];
  }

  /** It knows no price: a run with a budget in dollars is refused. */
  unpriced({ model, auxiliaryModels }: ModelUse) {
    return [model, ...auxiliaryModels];
  }

  async open(use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute> {
    let serve: FetchHandler = () => new Response(null, { status: 503 });
    const exposure = await scope.sandbox.expose((request) => serve(request));
    scope.defer(() => exposure.close());
    const route = new Route(use, scope, this.config);
    serve = requireBearer(exposure.token, (request) => route.answer(request)); // In case the backend's own check fails.
    return { baseUrl: exposure.url.replace(/\/$/, "") + use.basePath, key: exposure.token };
  }
}

class Route {
  readonly #endpoint: URL;
  readonly #key: string;
  readonly #secret: Replacements;

  constructor(
    readonly use: ModelUse,
    readonly scope: ModelGatewayScope,
    readonly config: Config,
  ) {
    const { endpoint, basePath, credentials } = use;
    const base = new URL(endpoint);
    const path = base.pathname.replace(/\/$/, "") + "/v1/messages".slice(basePath.length);
    this.#endpoint = new URL(path, base.origin);
    this.#key = credentials.ANTHROPIC_API_KEY ?? "";
    // The key in every form in which a server may repeat it, with stars of the same length.
    this.#secret = new Replacements(replacementsFor(this.#key, "*"));
  }

  async answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    if (request.method !== "POST" || pathname !== "/v1/messages" || !["", "?beta=true"].includes(search))
      return this.#refuse(404, `${request.method} ${pathname.slice(0, 100)} is no call of a model`);
    const signal = AbortSignal.any([request.signal, this.scope.signal]);
    // Parsed and written again: a key that is there twice can't mean one model here and another one there.
    const body = await bodyOf(request);
    if (body === undefined) return this.#refuse(400, "the body must be a JSON object of at most 32 MiB");
    const { model } = body;
    if (typeof model !== "string" || !isAllowed(model, this.use))
      return this.#refuse(403, "it names another model than the run's");
    const reach = this.scope.boundary.network.mode === "on" ? undefined : reachOf(body);
    if (reach !== undefined) return this.#refuse(403, `the boundary doesn't allow ${reach} of the provider`);
    const admission = await this.scope.admit(model, signal);
    if (!admission.allowed) return this.#refuse(admission.status, admission.reason);
    return this.#send(model, JSON.stringify(body), request.headers, search, signal);
  }

  async #send(
    model: string,
    body: string,
    given: Headers,
    search: string,
    signal: AbortSignal,
  ): Promise<Response> {
    this.scope.onDecision({
      target: this.#endpoint.host,
      allowed: true,
      reason: "a call of the run's model",
    });
    const exchange = this.scope.begin(model);
    const headers = Object.fromEntries(passed.there.flatMap((name) => pairOf(name, given.get(name))));
    const apiHeaders = { "anthropic-version": "2023-06-01", "content-type": "application/json" };
    const url = new URL(search, this.#endpoint);
    let response: IncomingMessage;
    try {
      response = await openResponse(
        {
          method: "POST",
          url,
          body,
          headers: { ...apiHeaders, ...headers, ...this.use.headers, "x-api-key": this.#key },
        },
        { whyClosed: (address) => whyAddressClosed(url, address, this.config) },
        signal,
      );
    } catch {
      exchange.ended({ retryable: true, message: `The model at ${url.host} can't be reached.` });
      return refusal(502, "the model can't be reached");
    }
    const { statusCode: status = 502 } = response;
    if (status >= 300 && status < 400) {
      response.destroy(); // The key goes to no other place.
      exchange.ended({ status, retryable: false, message: "The model's endpoint redirects." });
      return refusal(502, "the model's endpoint redirects");
    }
    if (status >= 400) {
      const message = this.#hidden(await text(response)).slice(0, 300);
      exchange.ended({
        status,
        retryable: status === 429 || status >= 500,
        message: `The model: ${message}`,
      });
      return new Response(message, { status });
    }
    const back = passed.back.flatMap((name) => pairOf(name, response.headers[name]));
    const reader = new UsageReader(`${response.headers["content-type"]}`, (usage: Usage) =>
      exchange.used({ model, ...usage }),
    );
    const end = (isWhole: boolean) =>
      exchange.ended(
        isWhole ? undefined : { retryable: true, isPartial: true, message: "The model's answer was cut." },
      );
    return new Response(this.#relay(response, reader, end), { status, headers: Object.fromEntries(back) });
  }

  /** As it arrives, and no faster than the agent reads. */
  #relay(response: IncomingMessage, reader: UsageReader, end: (isWhole: boolean) => void): ReadableStream {
    const replacer = new StreamReplacer(this.#secret);
    const pieces = async function* () {
      let isWhole = false;
      try {
        for await (const piece of response) {
          reader.push(piece);
          yield replacer.push(piece);
        }
        isWhole = true;
        yield replacer.end();
      } finally {
        response.destroy();
        reader.end();
        end(isWhole);
      }
    };
    return ReadableStream.from(pieces());
  }

  #hidden(said: string): string {
    const replacer = new StreamReplacer(this.#secret);
    return Buffer.concat([replacer.push(Buffer.from(said)), replacer.end()]).toString();
  }

  #refuse(status: number, reason: string): Response {
    this.scope.onDecision({ target: this.#endpoint.host, allowed: false, reason });
    return refusal(status, reason);
  }
}

const refusal = (status: number, message: string) =>
  Response.json({ type: "error", error: { type: "api_error", message } }, { status });

function pairOf(name: string, value: string | readonly string[] | null | undefined): [string, string][] {
  return typeof value === "string" ? [[name, value]] : [];
}

function isAllowed(model: string, { model: main, auxiliaryModels }: ModelUse): boolean {
  const isLike = (pattern: string) =>
    new RegExp(`^${pattern.replaceAll(/[^\w*]/g, "\\$&").replaceAll("*", ".*")}$`).test(model);
  return model === main || auxiliaryModels.some(isLike);
}

/** What else of the provider's the request would use, which reaches other places than the model. */
function reachOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map(reachOf).find((found) => found !== undefined);
  if (!isJsonObject(value)) return undefined;
  if ("mcp_servers" in value) return "MCP servers";
  if (value.type === "url" || value.type === "file") return "a file by its address";
  const { tools } = value;
  if (
    Array.isArray(tools) &&
    tools.some((tool) => !isJsonObject(tool) || !["custom", undefined].includes(typeOf(tool)))
  )
    return "a tool";
  return Object.values(value)
    .map(reachOf)
    .find((found) => found !== undefined);
}

const typeOf = ({ type }: JsonObject) => (type === undefined ? undefined : String(type));

/** A name or an address that leads into the runner's own network would let a request reach what is there. */
function whyAddressClosed(url: URL, address: string, { privateRanges }: Config): string | undefined {
  return whyClosed(address, privateRanges.map(rangeOf), { port: portOf(url) });
}

async function bodyOf(request: Request): Promise<JsonObject | undefined> {
  let size = 0;
  const pieces: Uint8Array[] = [];
  for await (const piece of request.body ?? []) {
    size += piece.length;
    if (size > maxBodyBytes) return undefined;
    pieces.push(piece);
  }
  try {
    const body: unknown = JSON.parse(Buffer.concat(pieces).toString());
    return isJsonObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("gateway", new Gateway(config)),
});
