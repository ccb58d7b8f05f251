import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { Endpoint } from "./place/endpoint.js";

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
