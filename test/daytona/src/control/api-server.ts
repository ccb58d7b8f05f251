import { randomUUID } from "node:crypto";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { ApiError, errorBody, notFound, sendError } from "../http/api-error.js";
import type { Routes } from "../http/routes.js";
import type { ApiRequest, RequestFault } from "../interface.js";
import { type FaultPlan, faultError } from "./fault-plan.js";
import type { LogStreams } from "./logs/log-streams.js";
import type { ToolboxProxy } from "./toolbox-proxy.js";

/** On a request that this server sends itself: faults don't apply to it. */
const repeatHeader = "x-loopback-repeat";

interface Recorded extends ApiRequest {
  status: number;
}

export interface ApiParts {
  readonly apiKey: string;
  readonly routes: Routes;
  readonly toolbox: ToolboxProxy;
  readonly logStreams: LogStreams;
  readonly faults: FaultPlan;
}

/** One server for the control plane, under `/api`, and for the proxy to the sandboxes, under `/toolbox`. */
export class ApiServer {
  readonly #server: Server;
  readonly requests: Recorded[] = [];
  readonly #repeatToken = randomUUID();

  constructor(private readonly parts: ApiParts) {
    this.#server = createServer((request, response) => this.#handle(request, response));
    this.#server.requestTimeout = 0;
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
  }

  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the API doesn't listen");
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { parts } = this;
    const isRepeat = request.headers[repeatHeader] === this.#repeatToken;
    const record = this.#record(request, !isRepeat);
    response.once("close", () => {
      record.status = response.writableFinished ? response.statusCode : 0;
    });
    const url = new URL(record.url, "http://loopback");
    const isToolbox = url.pathname.startsWith("/toolbox/");
    try {
      const fault = isRepeat ? undefined : parts.faults.take(record.method, url);
      if (fault) {
        if (fault.afterwards) await this.#carryOut(request);
        fail(fault, request);
        return;
      }
      this.#authorize(request);
      if (isToolbox) await parts.toolbox.handle({ request, response }, url);
      else await this.#route(request, response, url);
    } catch (error) {
      sendError(request, response, error, isToolbox ? "DAYTONA_PROXY" : "DAYTONA_API");
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const route = this.parts.routes.find(request.method ?? "GET", url);
    if (!route) throw notFound(`Cannot ${request.method} ${url.pathname}`);
    await route.handler({ request, response, path: route.path, query: url.searchParams });
  }

  /** Executes the request normally, by sending it to itself, and drops the response. */
  async #carryOut(request: IncomingMessage): Promise<void> {
    const again = httpRequest(`${this.url}${request.url}`, {
      method: request.method,
      headers: { ...request.headers, [repeatHeader]: this.#repeatToken },
    });
    request.pipe(again);
    await new Promise<void>((resolve, reject) => {
      again.once("error", reject);
      again.once("response", (answer) => answer.resume().once("close", resolve));
    });
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const record = this.#record(request);
    const url = new URL(record.url, "http://loopback");
    socket.on("error", () => socket.destroy());
    try {
      const fault = this.parts.faults.take(record.method, url);
      if (fault) {
        fail(fault, request);
        return;
      }
      // Without socket.io, as here, the SDK falls back to polling.
      if (!url.pathname.startsWith("/toolbox/")) throw notFound(`Cannot GET ${url.pathname}`);
      this.#authorize(request);
      await this.parts.logStreams.upgrade(request, socket, head, this.parts.toolbox.target(url));
      record.status = 101;
    } catch (thrown) {
      const error = thrown instanceof ApiError ? thrown : new ApiError(500, String(thrown));
      record.status = error.status;
      const body = JSON.stringify(errorBody(error, record.method, url.pathname, "DAYTONA_PROXY"));
      const headers = Object.entries(error.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(
        `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ""}\r\ncontent-type: application/json\r\n` +
          `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n${headers.join("")}\r\n${body}`,
      );
    }
  }

  #authorize(request: IncomingMessage): void {
    const isValid = request.headers.authorization === `Bearer ${this.parts.apiKey}`;
    if (!isValid || this.parts.faults.keyIsExpired) throw new ApiError(401);
  }

  #record(request: IncomingMessage, isClients = true): Recorded {
    const record = { method: request.method ?? "GET", url: request.url ?? "/", status: 0 };
    if (isClients) this.requests.push(record);
    return record;
  }
}

/** Cuts the connection, or throws the response's error. */
function fail(fault: RequestFault, request: IncomingMessage): void {
  if (fault.status !== "cut") throw faultError(fault);
  request.socket.destroy();
}
