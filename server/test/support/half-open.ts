import { once } from "node:events";
import { Agent, get } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Connections whose requests begin, and never continue. Resolves when each was accepted or refused. */
export async function halfOpen(url: string, count: number): Promise<readonly Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {
      // The server ends what is too much: that is what these tests provoke.
    });
    socket.resume();
    socket.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ");
    return socket;
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")])));
  return sockets;
}

export const alive = (sockets: readonly Socket[]) =>
  sockets.filter(({ closed, destroyed }) => !closed && !destroyed);

/** The status of a request, or the code of its failure. */
export function statusOf(url: string, options: { headers?: Record<string, string>; agent?: Agent } = {}) {
  return new Promise<number | string | undefined>((resolve) => {
    const sent = get(url, { agent: new Agent(), ...options }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    });
    sent.once("error", (error) => resolve("code" in error ? String(error.code) : error.message));
  });
}
