import { AmbitError, failureOf, isFailedResult } from "./errors.js";

export interface HttpOptions {
  /** The server's address. Default: `http://127.0.0.1:8765`. */
  readonly url?: string | URL;
  /** The server's token, or a function that returns the one to use now. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** Headers of every request, such as those of a proxy in front of the server. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the platform's own. */
  readonly fetch?: typeof fetch;
}

export interface HttpCall {
  readonly method?: "GET" | "POST" | "DELETE";
  /** Values that are undefined are left out. */
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, unless it is a stream or bytes. */
  readonly body?: unknown;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

const defaultUrl = "http://127.0.0.1:8765";

/** A name that a URL resolves before it is sent: the request would be one for something else. */
const dotSegment = /\/\.{1,2}(?:\/|$)/;

/** Requests to one server: where it is, who calls, and how its refusals become errors. */
export class Http {
  readonly url: string;
  readonly #options: HttpOptions;
  readonly #fetch: typeof fetch;

  constructor(options: HttpOptions) {
    this.url = String(options.url ?? defaultUrl).replace(/\/+$/, "");
    this.#options = options;
    // A browser's fetch must be called on its window.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Whether its token is a page's (`makeToken`), whose runs bring only `sessionId`, `messages` and `runId`. */
  async isPage(): Promise<boolean> {
    return (await this.#token())?.startsWith("page_") === true;
  }

  /** @throws AmbitError for any answer that isn't 2xx, and if no server answers; what `signal` is aborted with */
  async send(path: string, call: HttpCall = {}): Promise<Response> {
    const { method = "GET", query = {}, headers = {}, body, accept = "application/json", signal } = call;
    if (dotSegment.test(path))
      throw new AmbitError(`no run, session or file is named "." or "..": ${path}`, {
        code: "not_found",
        retryable: false,
      });
    const value = await this.#token();
    const response = await this.#fetch(`${this.url}${path}${queryOf(query)}`, {
      method,
      headers: {
        ...this.#options.headers,
        ...(value === undefined ? {} : { authorization: `Bearer ${value}` }),
        ...(body === undefined || isRaw(body) ? {} : { "content-type": "application/json" }),
        accept,
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
      // What a browser needs before it sends a stream.
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
      ...(signal === undefined ? {} : { signal }),
    }).catch((cause: unknown) => {
      signal?.throwIfAborted();
      const fix = "start it with `ambit serve`, or check the URL";
      throw new AmbitError(`no server answers at ${this.url}: ${fix}`, {
        code: "unreachable",
        retryable: true,
        cause,
      });
    });
    if (response.ok) return response;
    throw await refusalOf(response);
  }

  async #token(): Promise<string | undefined> {
    const { token } = this.#options;
    return typeof token === "function" ? await token() : token;
  }

  /** The answer as JSON, of the shape that the server's OpenAPI document promises. */
  async json<Answer>(path: string, call: HttpCall = {}): Promise<Answer> {
    const response = await this.send(path, call);
    const answer: Answer = JSON.parse(await response.text());
    return answer;
  }
}

type Raw = ReadableStream<Uint8Array> | Blob | ArrayBuffer;

function isRaw(body: unknown): body is Raw {
  return body instanceof ReadableStream || body instanceof Blob || body instanceof ArrayBuffer;
}

function queryOf(query: Readonly<Record<string, string | number | undefined>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters}`;
}

async function refusalOf(response: Response): Promise<AmbitError> {
  const { status } = response;
  const retryAfterMs = millisecondsOf(response.headers.get("retry-after"));
  const text = await response.text().catch(() => "");
  const refusal = refusalIn(text);
  if (refusal !== undefined) return failureOf(refusal, status, retryAfterMs);
  return new AmbitError(`the server answered ${status}, without a reason of Ambit's`, {
    code: "invalid_response",
    retryable: status === 429 || status >= 500,
    status,
    retryAfterMs,
  });
}

/** A refusal is a result, and in a stream the only record. */
function refusalIn(text: string) {
  try {
    const value: unknown = JSON.parse(text);
    if (isFailedResult(value)) return value;
    const result =
      typeof value === "object" && value !== null && "result" in value ? value.result : undefined;
    return isFailedResult(result) ? result : undefined;
  } catch {
    return undefined;
  }
}

function millisecondsOf(retryAfter: string | null): number | undefined {
  const seconds = Number(retryAfter ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}
