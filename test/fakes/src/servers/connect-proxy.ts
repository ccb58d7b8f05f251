import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { listening } from "./listening.js";

export interface ConnectProxy {
  readonly port: number;
  readonly url: string;
  /** What was asked for, as it was spelled: `93.184.216.34:443`, in order. */
  readonly asked: readonly string[];
  /** Requests that were no CONNECT. */
  readonly others: readonly string[];
}

export interface ConnectProxyOptions {
  /** `user:password`. Default: everyone may use it. */
  readonly credentials?: string;
  /** Where a destination really is, `host:port`; undefined refuses it with 403. Default: where it says. */
  readonly leadsTo?: (destination: string) => string | undefined;
  /** Instead of a tunnel: a status, or no answer at all. */
  readonly answer?: number | "none" | "close";
}

/** A company's proxy: tunnels by CONNECT and nothing else, on this host's loopback until the test ends. */
export async function openConnectProxy(
  onEnd: (close: () => void) => void,
  { credentials, leadsTo = (destination) => destination, answer }: ConnectProxyOptions = {},
): Promise<ConnectProxy> {
  const asked: string[] = [];
  const others: string[] = [];
  const sockets = new Set<Socket>();
  const expected =
    credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
  const server = createServer((request, response) => {
    others.push(`${request.method} ${request.url}`);
    response.writeHead(405).end();
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("connect", (request, client, head) => {
    const destination = request.url ?? "";
    const end = (status: number, header = "") =>
      client.end(`HTTP/1.1 ${status} Proxy\r\n${header}Content-Length: 0\r\n\r\n`);
    if (expected !== undefined && request.headers["proxy-authorization"] !== expected)
      return end(407, 'Proxy-Authenticate: Basic realm="company"\r\n');
    asked.push(destination);
    if (answer === "none") return undefined;
    if (answer === "close") return client.destroy();
    if (answer !== undefined) return end(answer);
    const place = leadsTo(destination);
    if (place === undefined) return end(403);
    const [, host = "", port = ""] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(place) ?? [];
    const upstream = connect(Number(port), host);
    upstream.once("connect", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", () => (upstream.bytesRead === 0 ? end(502) : client.destroy()));
    return client.on("close", () => upstream.destroy());
  });
  const port = await listening(server, (close) =>
    onEnd(() => {
      for (const socket of sockets) socket.destroy();
      close();
    }),
  );
  return { port, url: `http://127.0.0.1:${port}`, asked, others };
}
