/** One request of the runner's own. */
export interface ApiRequest {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly body: string;
}

/**
 * Sends one to an address that the operator allows, without following redirects. Rejects where there is no whole response of
 * at most 1 MiB.
 */
export type SendToApi = (request: ApiRequest, signal: AbortSignal) => Promise<ApiResponse>;

/** A request to a host's API, before it has an address and a credential. */
export interface ApiCall {
  readonly method: ApiRequest["method"];
  /** The path below the API's base URL, with its query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly content?: unknown;
}

export interface ApiAnswer {
  readonly status: number;
  readonly content: unknown;
}

/** The host refused a request, or said something that can't be understood. */
export class ApiFailed extends Error {}

export interface ApiOptions {
  /** The API's base URL, without a slash at its end. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The value of `Authorization`. */
  readonly authorization: string | undefined;
  readonly send: SendToApi;
  readonly signal: AbortSignal;
}

/** Sends JSON, and reads it. @throws ApiFailed; the signal's reason */
export async function callApi(
  { base, headers, authorization, send, signal }: ApiOptions,
  { method, path, content }: ApiCall,
): Promise<ApiAnswer> {
  const request = {
    method,
    url: new URL(`${base}${path}`),
    headers: {
      ...headers,
      "user-agent": "ambit",
      ...(authorization === undefined ? {} : { authorization }),
      ...(content === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(content === undefined ? {} : { body: JSON.stringify(content) }),
  };
  const { status, body } = await send(request, signal);
  // Some hosts send a caller without a right to their page for signing in.
  const check = "check apiUrl, and the rights of the credential";
  if (status >= 300 && status < 400)
    throw new ApiFailed(`it answered HTTP ${status}, and redirects aren't followed: ${check}`);
  try {
    return { status, content: JSON.parse(body) };
  } catch {
    throw new ApiFailed(`it answered HTTP ${status} without JSON: ${check}`);
  }
}

/** What a refusal says, on one line. Pure. */
export function refusalOf(
  { status, content }: ApiAnswer,
  { authorization = "" }: Pick<ApiOptions, "authorization">,
): ApiFailed {
  const [, sent = ""] = authorization.split(" ");
  const token = Buffer.from(sent, "base64").toString().split(":").at(-1) ?? "";
  // The token is replaced before the text is cut: later, a part of it couldn't be found by its value.
  const said = [sent, token]
    .filter((secret) => secret !== "")
    .reduce((text, secret) => text.replaceAll(secret, "[redacted]"), JSON.stringify(content ?? ""))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .slice(0, 400);
  return new ApiFailed(`it answered HTTP ${status}: ${said}`);
}
