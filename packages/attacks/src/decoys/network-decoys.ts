import { createSocket } from "node:dgram";
import { createServer, isIPv6, type Server, type Socket } from "node:net";
import type { Endpoint } from "./place.js";

/** Open connections of a decoy. */
export const probeConnections = 64;

/**
 * Bounds the open connections of a decoy, which every process of this host may reach: one more, and the oldest ends. A flood
 * displaces itself: it neither takes the process's descriptors nor hides the decoy from a probe.
 */
export function boundConnections(server: Server, maxConnections = probeConnections): void {
  /** In the order of their start. */
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const [oldest] = open;
    if (open.size <= maxConnections || oldest === undefined) return;
    // Its close follows a turn later.
    open.delete(oldest);
    oldest.destroy();
  });
}

/**
 * Attempts to get a free port. The kernel can give the same one to two programs that don't listen yet, and refuses the second one
 * that does.
 */
const maxAttempts = 5;
/** Bytes that a decoy keeps of what it receives: more than all attacks of a stage send. */
const maxReceivedBytes = 1_000_000;

export interface StreamDecoy {
  readonly name: string;
  /** For unix sockets the port is 0. */
  readonly endpoint: Endpoint;
  /** Everything that it received, as latin1. */
  received(): string;
  close(): Promise<void>;
}

/**
 * A server that answers every request with an HTTP response that contains `answer`. Undefined if this host has no such
 * address, or it is in use.
 */
export function openStreamDecoy(
  where: { readonly host: string; readonly port?: number } | { readonly path: string },
  answer: string,
  attempt = 1,
): Promise<StreamDecoy | undefined> {
  const sockets = new Set<Socket>();
  let received = "";
  const response = `HTTP/1.1 200 OK\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy()); // Attacks interrupt connections, which needs no report.
    socket.on("data", (data) => {
      if (received.length < maxReceivedBytes) received += data.toString("latin1");
      socket.write(response);
    });
  });
  boundConnections(server);
  const name = "path" in where ? where.path : where.host;
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const isAnyPort = "host" in where && where.port === undefined;
      if (error.code === "EADDRINUSE" && isAnyPort && attempt < maxAttempts)
        resolve(openStreamDecoy(where, answer, attempt + 1));
      else if (error.code === "EADDRNOTAVAIL" || error.code === "EADDRINUSE" || error.code === "EAFNOSUPPORT")
        resolve(undefined);
      else reject(error);
    });
    server.listen(
      "path" in where ? { path: where.path } : { host: where.host, port: where.port ?? 0 },
      () => {
        const address = server.address();
        const port = typeof address === "object" && address !== null ? address.port : 0;
        resolve({
          name: `${name}:${port}`,
          endpoint: { host: name, port },
          received: () => received,
          close: () =>
            new Promise((closed) => {
              server.close(() => closed());
              for (const socket of sockets) socket.destroy();
            }),
        });
      },
    );
  });
}

export interface DatagramDecoy {
  readonly endpoint: Endpoint;
  /** Everything that it received, as latin1. */
  received(): string;
  close(): Promise<void>;
}

/** Answers every datagram with `answer`. Undefined if this host doesn't have the address. */
export function openDatagramDecoy(host: string, answer: string): Promise<DatagramDecoy | undefined> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  let received = "";
  socket.on("message", (message, { address, port }) => {
    received += message.toString("latin1");
    socket.send(answer, port, address);
  });
  return new Promise((resolve, reject) => {
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRNOTAVAIL" || error.code === "EAFNOSUPPORT") resolve(undefined);
      else reject(error);
    });
    socket.bind({ address: host, port: 0, exclusive: true }, () => {
      const { port } = socket.address();
      resolve({
        endpoint: { host, port },
        received: () => received,
        close: () => new Promise((closed) => socket.close(() => closed())),
      });
    });
  });
}
