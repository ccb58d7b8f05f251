import { once } from "node:events";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { signalWithin } from "@ambit/backend-kit";
import type { z } from "zod";
import type { ApiServer } from "./connect.js";
import { ApiError, statusSchema } from "./failure.js";

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the server's address, such as `api/v1/namespaces/default/pods`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/** A page of pods has a few MiB. */
const maxAnswerBytes = 64 * 1024 * 1024;
const maxStatusBytes = 64 * 1024;

/** Typed requests to the API server, each with a time limit. */
export class Api {
  constructor(
    readonly server: ApiServer,
    readonly requestTimeoutMs: number,
  ) {}

  /** @throws ApiError for a refusal; Error if the server can't be reached; the signal's reason */
  async ask<Answer>(request: ApiRequest, schema: z.ZodType<Answer>): Promise<Answer> {
    const signal = signalWithin(this.requestTimeoutMs, request.signal);
    const response = await this.#send(request, signal);
    return schema.parse(JSON.parse((await bodyOf(response, maxAnswerBytes)).toString("utf8")));
  }

  /** The answer as it arrives, for a watch: no time limit but the signal. */
  async stream(request: ApiRequest & { readonly signal: AbortSignal }): Promise<IncomingMessage> {
    return await this.#send(request, request.signal);
  }

  async #send(
    { method = "GET", path, query = {}, body }: ApiRequest,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { url: server } = this.server;
    const url = new URL(path, server);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const content = body === undefined ? undefined : JSON.stringify(body);
    const credentials = await this.server.credentials();
    signal.throwIfAborted();
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const outgoing = send(url, {
      ...credentials,
      method,
      signal,
      headers: {
        ...credentials.headers,
        accept: "application/json",
        ...(content === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
      },
    });
    outgoing.end(content);
    try {
      const [response]: IncomingMessage[] = await once(outgoing, "response");
      if (response === undefined) throw new Error("the API server gave no response");
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      throw apiErrorOf(statusCode, await bodyOf(response, maxStatusBytes));
    } catch (error) {
      outgoing.destroy();
      // An aborted request fails with an error of Node's own.
      signal.throwIfAborted();
      throw error;
    }
  }
}

/** @param body a `Status`, or what a proxy in between says. */
export function apiErrorOf(statusCode: number, body: Buffer): ApiError {
  const text = body.toString("utf8");
  try {
    const { message, reason } = statusSchema.parse(JSON.parse(text));
    return new ApiError(statusCode, reason, message);
  } catch {
    return new ApiError(statusCode, "", `it answered ${statusCode}: ${text.slice(0, 200)}`);
  }
}

/** @throws Error for a longer one */
export async function bodyOf(response: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response) {
    length += part.length;
    if (length > maxBytes) throw new Error(`the API server's answer is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
