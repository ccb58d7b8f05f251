import { createServer as createHttpServer, request as httpRequest, type IncomingMessage } from "node:http";
import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { httpProxyPort, tlsProxyPort } from "../addresses.js";
import { type Directory, type Neighbour, nameMatches } from "../container/directory.js";
import { join } from "../container/join.js";
import { serverName } from "./server-name.js";
import type { WorldHosts } from "./world-hosts.js";

/** Replaces placeholders in a request's headers and URL, for the hosts that may get the value. */
function substitute(text: string, host: string, { substitutions }: Neighbour): string {
  let result = text;
  for (const { placeholder, value, hosts } of substitutions)
    if (hosts.length === 0 || hosts.some((pattern) => nameMatches(pattern, host)))
      result = result.replaceAll(placeholder, value);
  return result;
}

function hostOf(request: IncomingMessage): string {
  const host = (request.headers.host ?? "").toLowerCase();
  return host.replace(/:\d+$/, "");
}

interface Way {
  readonly sandbox: Neighbour;
  /** The name or address that the sandbox gave. */
  readonly host: string;
  readonly upstream: Duplex;
}

/** The proxy for a sandbox's web traffic: forwarded by name, or refused. Nothing is forwarded by address alone. */
export class WebProxy {
  constructor(
    private readonly directory: Directory,
    private readonly hosts: WorldHosts,
  ) {}

  async listen(): Promise<void> {
    const http = createHttpServer((request, response) => {
      const way = this.#way(request.socket, hostOf(request), 80);
      if (!way) {
        response.writeHead(403, { "content-type": "text/plain", connection: "close" });
        response.end("domain not in the allow list\n");
        return;
      }
      const { method, headers } = this.#onward(request, way);
      const upstream = httpRequest(
        { createConnection: () => way.upstream, method, path: this.#path(request, way), headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
          answer.pipe(response);
        },
      );
      upstream.once("error", () => response.destroy());
      response.once("close", () => upstream.destroy());
      request.pipe(upstream);
    });
    http.requestTimeout = 0;
    // A WebSocket: its head is forwarded like a request's, and the rest as bytes.
    http.on("upgrade", (request, socket, head) => {
      const way = this.#way(request.socket, hostOf(request), 80);
      if (!way) {
        socket.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n");
        return;
      }
      const { method, headers } = this.#onward(request, way);
      const lines = headers.flatMap((text, index) =>
        index % 2 === 0 ? [`${text}: ${headers[index + 1]}`] : [],
      );
      const { upstream } = way;
      upstream.write(`${method} ${this.#path(request, way)} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      upstream.write(head);
      join(socket, upstream);
    });
    const tls = createServer((socket) => this.#passTls(socket));
    await Promise.all([listening(http, httpProxyPort), listening(tls, tlsProxyPort)]);
  }

  #way(socket: Socket, host: string, port: number): Way | undefined {
    const sandbox = this.directory.sandbox(socket.remoteAddress);
    const name = this.directory.host(host);
    if (!sandbox || name === undefined || !this.directory.mayReach(sandbox, host)) return undefined;
    const upstream = this.hosts.open(name, port, sandbox.id);
    return upstream && { sandbox, host, upstream };
  }

  #onward(request: IncomingMessage, { sandbox, host }: Way) {
    const headers = request.rawHeaders.map((text, index) =>
      index % 2 === 0 ? text : substitute(text, host, sandbox),
    );
    return { method: request.method ?? "GET", headers };
  }

  #path(request: IncomingMessage, { sandbox, host }: Way): string {
    return substitute(request.url ?? "/", host, sandbox);
  }

  /** By the server name in the client's first message. The content is encrypted, so its placeholders aren't replaced. */
  #passTls(socket: Socket): void {
    let seen = Buffer.alloc(0);
    socket.on("error", () => socket.destroy());
    const onData = (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk]);
      const name = serverName(seen);
      if (name === "incomplete") return;
      socket.off("data", onData);
      socket.pause();
      const way = name === undefined ? undefined : this.#way(socket, name, 443);
      if (!way) {
        socket.destroy();
        return;
      }
      way.upstream.write(seen);
      join(socket, way.upstream);
    };
    socket.on("data", onData);
  }
}

function listening(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve, reject) => server.once("error", reject).listen(port, "0.0.0.0", resolve));
}
