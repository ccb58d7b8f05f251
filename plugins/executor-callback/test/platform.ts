import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface Platform {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  readonly received: Received[];
  /** Connections accepted so far. */
  connections(): number;
}

/** A real HTTP server on loopback that notes what arrives. Gone when the test ends. */
export async function startPlatform(
  answer: (request: Received, response: ServerResponse) => void = answerWith({ ok: true }),
): Promise<Platform> {
  const received: Received[] = [];
  let connections = 0;
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const noted = { method, url, headers, body: Buffer.concat(chunks).toString() };
      received.push(noted);
      answer(noted, response);
    });
  };
  const server = createServer(listener);
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    port: address.port,
    received,
    connections: () => connections,
  };
}

/** Answers 200 with the reference's envelope around `content`. */
export function answerWith(content: unknown, status: object = { code: "STATUS_CODE_OK" }) {
  return (_request: Received, response: ServerResponse) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ call: { id: "1", status, data: { role: "tool", tool_call_id: "1", content } } }),
    );
  };
}
