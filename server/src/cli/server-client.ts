import { type Environment, takeEnvironment } from "../configuration/environment.js";

/** A request to a running server that it refused, or that didn't reach it. */
export class ServerRefused extends Error {
  override readonly name = "ServerRefused";
}

export interface ClientOptions {
  /** `--url`. */
  readonly url?: string;
}

/** Client of a running `ambit serve`: at `--url`, else at `AMBIT_HOST` and `AMBIT_PORT`. */
export class ServerClient {
  readonly #base: string;
  readonly #token: string | undefined;

  constructor({ url }: ClientOptions, environment: Environment = takeEnvironment(process.env)) {
    const { AMBIT_HOST: host = "127.0.0.1", AMBIT_PORT: port = 8765, AMBIT_ADDRESS: address } = environment;
    this.#base = (url ?? address ?? `http://${host}:${port}`).replace(/\/+$/, "");
    this.#token = environment.AMBIT_TOKEN;
  }

  /** @throws ServerRefused with the server's own reason */
  async json(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
    const response = await this.send(method, path, body);
    return response.json();
  }

  async send(method: "GET" | "POST", path: string, body?: unknown): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.#base}${path}`, {
        method,
        headers: {
          ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
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
    const fix = response.status === 401 ? ": set AMBIT_TOKEN to a token of this server" : "";
    throw new ServerRefused(`${this.#base} refused it (${response.status}): ${reason}${fix}`);
  }
}
