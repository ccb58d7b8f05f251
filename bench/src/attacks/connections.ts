import { connect, type Socket } from "node:net";
import { HttpCaller } from "../http.js";
import { count, type LoadAttack, repeatedly } from "./attack.js";

/** Connections that one attacker keeps open at most: its own descriptors are limited too. */
const maxOpen = 4_000;
/** Of those that are being opened at one time. */
const maxOpening = 256;

/** Half of a request, on as many connections as the server takes. Each that ends is opened again. */
export const halfOpenConnections: LoadAttack = {
  run: (target, tally, signal) =>
    new Promise((resolve) => {
      const { hostname, port } = new URL(target.url);
      const open = new Set<Socket>();
      let opening = 0;
      const fill = () => {
        while (!signal.aborted && opening < maxOpening && open.size < maxOpen) {
          opening += 1;
          const socket = connect({ host: hostname, port: Number(port) });
          open.add(socket);
          let isOpening = true;
          const opened = () => {
            if (isOpening) opening -= 1;
            isOpening = false;
          };
          socket.on("error", () => {});
          socket.once("connect", () => {
            opened();
            count(tally, "connections");
            socket.write("GET /runs HTTP/1.1\r\nHost: localhost\r\nX-Half: ");
            fill();
          });
          socket.once("close", () => {
            opened();
            open.delete(socket);
            setImmediate(fill);
          });
        }
      };
      signal.addEventListener("abort", () => {
        for (const socket of open) socket.destroy();
        resolve();
      });
      fill();
    }),
};

/** As many requests as fit into a segment, on a connection that takes no response. */
export const pipelinedRequests: LoadAttack = {
  run: (target, tally, signal) => {
    const { hostname, port } = new URL(target.url);
    const one = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const segment = one.repeat(Math.floor(65_536 / one.length));
    const step = () =>
      new Promise<void>((resolve) => {
        const socket = connect({ host: hostname, port: Number(port) });
        const leave = setTimeout(() => socket.destroy(), 200);
        socket.on("error", () => {});
        socket.once("connect", () => {
          count(tally, "segments");
          socket.write(segment);
        });
        socket.once("close", () => {
          clearTimeout(leave);
          resolve();
        });
      });
    return repeatedly(4, step, tally, signal);
  },
};

/** Bodies in chunks of a single byte, of callers without a token. Each connection that ends is opened again. */
export const singleBytes: LoadAttack = {
  run: (target, tally, signal) => {
    const { hostname, port } = new URL(target.url);
    const head = "POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    const chunks = Buffer.from("1\r\nx\r\n".repeat(200_000));
    const step = () =>
      new Promise<void>((resolve) => {
        const socket = connect({ host: hostname, port: Number(port) }).resume();
        const leave = () => socket.destroy();
        signal.addEventListener("abort", leave, { once: true });
        socket.on("error", () => {});
        socket.once("connect", () => {
          count(tally, "bodies");
          socket.write(head);
          socket.write(chunks);
        });
        socket.once("close", () => {
          signal.removeEventListener("abort", leave);
          resolve();
        });
      });
    return repeatedly(200, step, tally, signal);
  },
};

/** The description of the API, which needs no token. */
export const openDocument: LoadAttack = {
  run: async (target, tally, signal) => {
    const caller = new HttpCaller(target.url);
    const step = async () => {
      await caller.get("/openapi.json");
      count(tally, "documents");
    };
    await repeatedly(16, step, tally, signal);
    caller.close();
  },
};
