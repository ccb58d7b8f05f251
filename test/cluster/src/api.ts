import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

/** An object of the API: what the tests' own programs read of it, they check themselves. */
export type ApiObject = Readonly<Record<string, unknown>>;

/** What the API server answers a request with that it refuses. */
export class ApiRefused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The API of the tests' own cluster, with the rights of one of its certificates. */
export class ClusterApi {
  readonly #server: string;
  readonly #agent: Agent;

  /** @param keys the folder with the certificates. */
  constructor(server: string, keys: string, subject = "admin") {
    const read = (name: string) => readFileSync(join(keys, name));
    this.#server = server;
    this.#agent = new Agent({
      ca: read("ca.crt"),
      cert: read(`${subject}.crt`),
      key: read(`${subject}.key`),
      keepAlive: true,
    });
  }

  /**
   * @param body its type is that of a merge patch where the method is PATCH.
   * @throws ApiRefused with what the server says.
   */
  async request(method: string, path: string, body?: object): Promise<ApiObject> {
    const response = await this.#send(method, path, body);
    const answer = await text(response);
    const status = response.statusCode ?? 0;
    if (status >= 300) throw new ApiRefused(status, `${method} ${path}: ${status} ${answer.slice(0, 1000)}`);
    return answer.startsWith("{") ? asObject(JSON.parse(answer)) : { answer };
  }

  /** The events of a watch, until the connection ends. */
  async *watch(path: string, resourceVersion: string): AsyncGenerator<ApiObject> {
    const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`;
    const response = await this.#send("GET", `${path}?${query}`);
    if (response.statusCode !== 200) {
      response.destroy();
      throw new ApiRefused(response.statusCode ?? 0, `watch ${path}: ${response.statusCode}`);
    }
    for await (const line of createInterface(response)) yield asObject(JSON.parse(line));
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, body?: object): Promise<IncomingMessage> {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers: { "content-type": type } };
      const sent = request(`${this.#server}${path}`, options, resolve);
      sent.once("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

function asObject(value: unknown): ApiObject {
  if (typeof value !== "object" || value === null) throw new Error("The API server sent no object");
  return { ...value };
}
