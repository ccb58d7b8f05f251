import { Agent, type IncomingMessage, request } from "node:http";

/** A caller with one persistent connection, like a platform's. */
export class HttpCaller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(
    readonly url: string,
    /** Sent with each request. */
    readonly token?: string,
  ) {}

  /** Resolves when the response begins. */
  open(path: string, body: string, accept = "application/json"): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = {
        ...this.#authorization,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        accept,
      };
      const sent = request(new URL(path, this.url), { method: "POST", agent: this.#agent, headers }, resolve);
      sent.on("error", reject);
      sent.end(body);
    });
  }

  async post(path: string, body: string, accept?: string): Promise<Answer> {
    const response = await this.open(path, body, accept);
    return { status: response.statusCode ?? 0, text: await textOf(response) };
  }

  get(path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, headers: this.#authorization };
      const sent = request(new URL(path, this.url), options, (response) => {
        textOf(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  get #authorization(): Readonly<Record<string, string>> {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }

  close(): void {
    this.#agent.destroy();
  }
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}

/** The records of an NDJSON response as lines, each as soon as it arrives; not the blank ones, which keep it alive. */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<string, void, undefined> {
  response.setEncoding("utf8");
  let rest = "";
  for await (const chunk of response) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
  if (rest !== "") yield rest;
}
