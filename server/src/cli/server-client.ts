import { type Environment, takeEnvironment } from "../configuration/environment.js";
import { ConfigurationInvalid } from "../configuration/problems.js";
import { urlOf } from "../http/address.js";
import { localTokenFor } from "../local-token.js";

/** A request to a running server that it refused, or that didn't reach it. */
export class ServerRefused extends Error {
  override readonly name = "ServerRefused";
  /** The response's status; undefined without a response. */
  readonly status: number | undefined;

  constructor(message: string, options: ErrorOptions & { readonly status?: number } = {}) {
    super(message, options);
    this.status = options.status;
  }
}

export interface ClientOptions {
  /** `--url`. */
  readonly url?: string;
}

/** A run of a server. */
export interface RunOptions extends ClientOptions {
  /** `--project`, by which the operator tells runs of one id apart. */
  readonly project?: string;
}

/** The path and query of a run's route, such as `events`; of the run itself for "". Pure. */
export function pathOfRun(
  runId: string,
  route: string,
  { project }: RunOptions,
  query: Readonly<Record<string, string>> = {},
): string {
  const named = new URLSearchParams({ ...query, ...(project === undefined ? {} : { projectId: project }) });
  const asked = named.size === 0 ? "" : `?${named}`;
  return `/runs/${encodeURIComponent(runId)}${route === "" ? "" : `/${route}`}${asked}`;
}

/**
 * Where the server is: `--url`, else `AMBIT_ADDRESS`, else what `AMBIT_HOST` and `AMBIT_PORT` say.
 * @throws ConfigurationInvalid for a `--url` that is none
 */
export function addressOf({ url }: ClientOptions, environment: Environment): string {
  const { AMBIT_HOST: host = "127.0.0.1", AMBIT_PORT: port = 8765, AMBIT_ADDRESS: address } = environment;
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw new ConfigurationInvalid("--url", [`must be an http:// or https:// URL: ${urlOf(host, port)}`]);
  return (url ?? address ?? urlOf(host, port)).replace(/\/+$/, "");
}

/** Client of a running `ambit serve`: at `--url`, else where the environment says. */
export class ServerClient {
  readonly #base: string;
  /** What the environment sets, else what the server of this machine keeps for its callers. */
  readonly #token: Promise<string | undefined>;

  constructor(options: ClientOptions, environment: Environment = takeEnvironment(process.env)) {
    this.#base = addressOf(options, environment);
    const given = environment.AMBIT_TOKEN;
    this.#token = given === undefined ? localTokenFor(this.#base) : Promise.resolve(given);
    // Reported with the first request.
    this.#token.catch(() => undefined);
  }

  /** @throws ServerRefused with the server's own reason */
  async json(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
    const response = await this.send(method, path, body);
    return response.json();
  }

  /** @param accept default: whatever the server sends. */
  async send(method: "GET" | "POST", path: string, body?: unknown, accept = "*/*"): Promise<Response> {
    const token = await this.#token;
    let response: Response;
    try {
      response = await fetch(`${this.#base}${path}`, {
        method,
        headers: {
          accept,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (cause) {
      const fix = "start it with `ambit serve`, or name another with --url";
      throw new ServerRefused(`no server answers at ${this.#base}: ${fix}`, { cause });
    }
    if (response.ok) return response;
    const refusal: unknown = await response.json().catch(() => ({}));
    const reason =
      typeof refusal === "object" && refusal !== null && "error" in refusal ? String(refusal.error) : "";
    const why =
      response.status === 401
        ? "set AMBIT_TOKEN to a token of this server, or be the user that started it"
        : reason;
    const { status } = response;
    throw new ServerRefused(`${this.#base} refused it (${status}): ${why}`, { status });
  }
}
