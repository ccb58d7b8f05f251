import type { Server } from "node:net";

/** The port of a server that listens over TCP. @throws TypeError for any other */
export function listeningPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server has no TCP port");
  return address.port;
}
