import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listening } from "@ambit/fakes/listening";
import { onTestFinished } from "vitest";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: { readonly type: string; readonly data: Readonly<Record<string, unknown>> };
}

/** A server on loopback that keeps what is posted to it. */
export async function webhookReceiver(answer: (response: ServerResponse, path: string) => void) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    request.setEncoding("utf8");
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ headers: request.headers, body, message: JSON.parse(body) });
    answer(response, request.url ?? "");
    response.end();
  });
  const port = await listening(server, onTestFinished);
  return { received, port, url: `http://127.0.0.1:${port}` };
}
