import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";

/** Listens on loopback. @returns the port. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("loopback gave no port");
  return address.port;
}

/** Writes the same piece until so many bytes are sent, or the reader has left. */
export async function writeAll(response: ServerResponse, piece: Buffer, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (response.write(piece)) continue;
    await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
}
