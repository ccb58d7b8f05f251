import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ApiError } from "../../http/api-error.js";
import { join } from "../../runner/container/join.js";
import type { ToolboxTarget } from "./toolbox-client.js";

/** Forwards a request unchanged with its headers and body, and its response. */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { socketPath, path }: ToolboxTarget,
): Promise<void> {
  const { method, headers } = request;
  const forwarded = httpRequest({ socketPath, path, ...(method === undefined ? {} : { method }), headers });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    forwarded.once("response", resolve);
    forwarded.once("error", () =>
      reject(new ApiError(502, "bad gateway: the sandbox doesn't answer", "BAD_GATEWAY")),
    );
  });
  response.once("close", () => forwarded.destroy());
  request.pipe(forwarded);
  const answer = await answered;
  response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
  // A listener may disconnect at any time.
  await pipeline(answer, response).catch(() => response.destroy());
}

/**
 * Forwards an upgrade unchanged; then copies bytes in both directions. Returns a function that ends it like a lost
 * connection.
 */
export function forwardUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { socketPath, path }: ToolboxTarget,
): () => void {
  const inside = connect({ path: socketPath, allowHalfOpen: true });
  const lines = [`${request.method} ${path} HTTP/1.1`];
  for (let index = 0; index < request.rawHeaders.length; index += 2)
    lines.push(`${request.rawHeaders[index]}: ${request.rawHeaders[index + 1]}`);
  inside.write(`${lines.join("\r\n")}\r\n\r\n`);
  inside.write(head);
  join(socket, inside);
  return () => {
    inside.destroy();
    socket.destroy();
  };
}
