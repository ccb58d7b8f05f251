import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";

/** A request as the model's endpoint received it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Resolves when its connection or its response has ended. */
  readonly closed: Promise<unknown>;
}

export type AnswerWith = (response: ServerResponse, seen: SeenRequest) => unknown;

/** A model's endpoint on loopback that records requests. */
export class KitUpstream implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server = createServer((request, response) => void this.#take(request, response));
  answer: AnswerWith;

  private constructor(answer: AnswerWith) {
    this.answer = answer;
  }

  static async open(answer: AnswerWith): Promise<KitUpstream> {
    const upstream = new KitUpstream(answer);
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  get origin(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new Promise((resolve) => response.once("close", resolve));
    const parts: Buffer[] = [];
    // A gateway may abort its request; what arrived is recorded.
    for await (const part of request.on("error", () => undefined)) parts.push(part);
    const { method = "", url = "", headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(parts).toString(), closed };
    this.requests.push(seen);
    await this.answer(response, seen);
  }
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
