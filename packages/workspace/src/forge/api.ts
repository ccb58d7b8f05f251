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

/** A pull request to open. */
export interface NewPullRequest {
  readonly branch: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
  readonly labels: readonly string[];
}

export interface OpenedPullRequest {
  readonly url: string;
  readonly number: number;
  /** False: one for this branch was open already. */
  readonly opened: boolean;
}

/** A host's API for one repository. */
export interface ForgeApi {
  open(wish: NewPullRequest): Promise<OpenedPullRequest>;
}

/** The host refused a request, or said something that can't be understood. */
export class ApiFailed extends Error {}

/** A pull request was opened, and the host refused its labels. */
export class LabelsRefused extends ApiFailed {
  constructor(
    readonly pull: OpenedPullRequest,
    { message }: ApiFailed,
  ) {
    super(message);
  }
}

export interface ApiOptions {
  /** Without a slash at its end. */
  readonly base: string;
  /** Of the repository: `acme/app`. */
  readonly path: string;
  readonly token: string | undefined;
  readonly send: SendToApi;
  readonly signal: AbortSignal;
}

/** Sends JSON, and reads it. @throws ApiFailed; the signal's reason */
export async function callApi(
  { base, token, send, signal }: ApiOptions,
  method: ApiRequest["method"],
  path: string,
  headers: Readonly<Record<string, string>>,
  content?: unknown,
): Promise<{ readonly status: number; readonly content: unknown }> {
  const request = {
    method,
    url: new URL(`${base}${path}`),
    headers: {
      ...headers,
      "user-agent": "ambit",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(content === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(content === undefined ? {} : { body: JSON.stringify(content) }),
  };
  const { status, body } = await send(request, signal);
  if (status >= 300 && status < 400)
    throw new ApiFailed(`it answered HTTP ${status}, and redirects aren't followed: check apiUrl`);
  try {
    return { status, content: JSON.parse(body) };
  } catch {
    throw new ApiFailed(`it answered HTTP ${status} without JSON: check apiUrl`);
  }
}

/** What a refusal says, on one line. Pure. */
export function refusalOf(
  status: number,
  content: unknown,
  { token = "" }: Pick<ApiOptions, "token">,
): ApiFailed {
  const whole = JSON.stringify(content ?? "");
  // Before it is cut: a part of the token couldn't be found by its value later.
  const said = (token === "" ? whole : whole.replaceAll(token, "[redacted]"))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .slice(0, 400);
  return new ApiFailed(`it answered HTTP ${status}: ${said}`);
}
