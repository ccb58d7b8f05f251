import { isAmbitError } from "@ambit/core";
import {
  apiRefusalSchema,
  type Door,
  type DoorCall,
  type DoorRoute,
  RequestInvalid,
} from "@ambit/core/plugin";
import { refusalBy, type ScriptedApi } from "./scripted-api.js";

/** A request of a client of the door's protocol. */
export interface DoorRequest {
  /** Default: POST. */
  readonly method?: DoorRoute["method"];
  /** With a query, if there is one. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. Default: no body. */
  readonly body?: unknown;
}

/** Who sends a request, and until when. */
export interface DoorRequestOptions {
  /** Default: a platform. */
  readonly caller?: DoorCall["caller"];
  /** Aborts when the client leaves. Default: it stays. */
  readonly signal?: AbortSignal;
}

/**
 * One caller of a door, without a server: its routes get the requests as a server passes them on, and call an API that follows a
 * script.
 */
export class DoorStage {
  readonly #door: Door;
  readonly #api: ScriptedApi;
  readonly #callerId = crypto.randomUUID();
  /** The signal of a request aborts only while the request is kept. */
  readonly #requests: Request[] = [];

  constructor(door: Door, api: ScriptedApi) {
    this.#door = door;
    this.#api = api;
  }

  /**
   * The door's response. What it throws is answered as a server answers it: an error of Ambit's by its status, a refusal of the API
   * as the API answered it, and anything else with 500.
   *
   * @throws Error where the door has no such route
   */
  async send(sent: DoorRequest, { caller = "platform", signal }: DoorRequestOptions = {}): Promise<Response> {
    const { method = "POST", path, body } = sent;
    const url = new URL(path, "http://localhost");
    const { route, parameters } = this.#routeOf(method, url.pathname);
    const headers = new Headers(sent.headers);
    if (body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    const request = new Request(url, { method, headers, ...(signal === undefined ? {} : { signal }) });
    this.#requests.push(request);
    const call: DoorCall = {
      request,
      path: (name) => parameters[name] ?? "",
      json: async () => {
        if (body === undefined) throw new RequestInvalid([{ path: "", message: "isn't JSON" }]);
        return structuredClone(body);
      },
      fetch: this.#api.fetch,
      caller,
      callerId: this.#callerId,
    };
    try {
      const response: unknown = await route.handle(call);
      if (response instanceof Response) return response;
      return broken("handle() returned what is no Response");
    } catch (error) {
      if (isAmbitError(error)) return refusalBy(error);
      const { data: refusal } = apiRefusalSchema.safeParse(error);
      if (refusal === undefined)
        return broken(`handle() threw what is no error of Ambit's: ${String(error)}`);
      const { status, result, headers: more } = refusal;
      return Response.json(result, { status, headers: more });
    }
  }

  #routeOf(method: string, path: string) {
    const words = path.split("/");
    for (const route of this.#door.routes ?? []) {
      const pattern = route.path.split("/");
      const isRoute =
        route.method === method &&
        pattern.length === words.length &&
        pattern.every((word, index) => parameterIn(word) !== undefined || word === words[index]);
      if (!isRoute) continue;
      const parameters: Record<string, string> = {};
      for (const [index, word] of pattern.entries()) {
        const name = parameterIn(word);
        if (name !== undefined) parameters[name] = decodeURIComponent(words[index] ?? "");
      }
      return { route, parameters };
    }
    throw new Error(`the door ${this.#door.name} has no route ${method} ${path}`);
  }
}

/** The name of a parameter: `{chatId}` in a route's path. */
const parameterIn = (word: string): string | undefined => /^\{(.+)\}$/.exec(word)?.[1];

/** As a server answers for a plugin's fault. */
function broken(error: string): Response {
  const failure = { code: "plugin_broke_contract", retryable: false };
  return Response.json({ ok: false, error, failure }, { status: 500 });
}
