import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { AdmittedDestination, EgressProtocol } from "../decide.js";
import { readAuthority, type Target } from "../target.js";
import { HttpClients, type Tunnel } from "./clients.js";
import type { CredentialProxy } from "./credentials/credential-proxy.js";
import { escapeForReport, type Gate, UpstreamFailure } from "./gate.js";
import { valuesOf } from "./http/destination.js";
import { endWith, passRequest, passUpgrade, type UpstreamRoute } from "./http/exchange.js";
import {
  headersOf,
  isOwnAddress,
  type OwnResponse,
  type OwnServer,
  ownPath,
  refusal,
  unusable,
  upstreamFailure,
} from "./http/own-response.js";
import { PacedConnection } from "./http/paced-connection.js";
import { carryTunnel } from "./tunnel/tunnel.js";

/**
 * HTTP in absolute form and CONNECT. Node's own parser reads both sides, and each request is written again, on a
 * separate connection, so that smuggled content is never forwarded.
 */
export class HttpProxy {
  readonly #gate: Gate;
  readonly #server: Server;
  readonly #own: OwnServer | undefined;
  readonly #clients: HttpClients;
  readonly #credentials: CredentialProxy | undefined;

  /**
   * @param own handles requests for a path, and those that name the proxy's own address.
   * @param credentials serves tunnels to the hosts of the session's credentials, if there are any.
   */
  constructor(
    gate: Gate,
    own: OwnServer | undefined,
    credentials: CredentialProxy | undefined,
    onFault: (fault: unknown, client: Duplex) => void,
  ) {
    this.#gate = gate;
    this.#own = own;
    this.#credentials = credentials;
    this.#clients = new HttpClients(gate.limits);
    const settings = {
      maxHeaderSize: gate.limits.headerBytes,
      insecureHTTPParser: false,
      // Since Node 24.9: Java's client offers an upgrade to HTTP/2 with each request, and works without it.
      shouldUpgradeCallback: isWebSocket,
    };
    const server = createServer(settings);
    // A limit on their number would silently drop headers such as Content-Length; their size is already limited.
    server.maxHeadersCount = 0;
    server.timeout = gate.limits.idleMs;
    server.on("request", (request, response) => {
      const client = request.socket;
      this.#clients
        .begin(request, response)
        ?.then(() => (client.destroyed ? undefined : this.#serve(request, response)))
        .catch((fault: unknown) => onFault(fault, client));
    });
    server.on("upgrade", (request, client, head) => {
      this.#upgrade(request, client as Socket, head).catch((fault: unknown) => onFault(fault, client));
    });
    server.on("connect", (request, client, head) => {
      this.#connect(request, client, head).catch((fault: unknown) => onFault(fault, client));
    });
    server.on("clientError", (error: NodeJS.ErrnoException, client) => {
      // After a response that is still being written, another one would become part of its body.
      if (error.code === "ECONNRESET" || !client.writable || this.#clients.hasUnanswered(client)) {
        client.destroy();
        return;
      }
      const tooLarge = error.code === "HPE_HEADER_OVERFLOW";
      endWith(
        client,
        tooLarge ? unusable(431, "the header is too large") : unusable(400, "this is not valid HTTP"),
      );
    });
    this.#server = server;
  }

  /** Takes over a client. The socket is paused; `head` is what it has already sent. */
  accept(client: Socket, head: Buffer, tunnel?: Tunnel): void {
    if (head.length > 0) client.unshift(head);
    const connection = new PacedConnection(client);
    this.#clients.open(connection, tunnel);
    this.#server.emit("connection", connection);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#serveOwn(request, response)) return;
    const route = await this.#route(request, (own) => {
      response.writeHead(own.status, own.statusText, headersOf(own));
      response.end(own.body);
    });
    if (route === undefined) return;
    passRequest(request, response, route, this.#gate.limits);
  }

  /** Whether the request was for the session's own address. */
  #serveOwn(request: IncomingMessage, response: ServerResponse): boolean {
    const path = this.#ownPathOf(request);
    if (this.#own === undefined || path === undefined) return false;
    request.url = path;
    this.#clients.expectBody(request);
    // A response may take long, and a stream of events may be silent for long.
    request.socket.setTimeout(0);
    this.#own.listener(request, response);
    return true;
  }

  #ownPathOf(request: IncomingMessage): string | undefined {
    const tunnel = this.#clients.tunnelOf(request.socket);
    if (this.#own === undefined || (tunnel !== undefined && tunnel !== "own")) return undefined;
    return ownPath(request.url ?? "", this.#own.port);
  }

  /** An unencrypted WebSocket. Other upgrades switch to protocols whose host can't be compared. */
  async #upgrade(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    if (this.#clients.hasUnanswered(client)) return void client.destroy();
    this.#clients.leave(client);
    if (!isWebSocket(request)) {
      return endWith(client, unusable(501, "only upgrades to websocket are supported"));
    }
    if (this.#ownPathOf(request) !== undefined) {
      return endWith(client, unusable(501, "the session's own endpoints don't accept upgrades"));
    }
    const route = await this.#route(request, (own) => endWith(client, own));
    if (route === undefined) return;
    passUpgrade(request, client, head, route, this.#gate.limits);
  }

  async #connect(request: IncomingMessage, connection: Duplex, rest: Buffer): Promise<void> {
    if (this.#clients.hasUnanswered(connection)) return void connection.destroy();
    this.#clients.leave(connection);
    if (this.#clients.tunnelOf(connection) !== undefined) {
      return endWith(connection, unusable(400, "a tunnel can't lead to another proxy"));
    }
    if (!(connection instanceof PacedConnection)) return void connection.destroy();
    const { socket: client, head } = connection.release(rest);
    const raw = request.url ?? "";
    const reading = readAuthority(raw);
    if (!reading.ok) {
      const shown = { host: escapeForReport(raw), port: 0 };
      this.#gate.report(shown, "connect", { allowed: false, reason: reading.why });
      return endWith(client, refusal(shown, reading.why));
    }
    if (isOwnAddress(reading.target, this.#own?.port)) {
      client.write(tunnelOpened);
      return this.accept(client, head, "own");
    }
    const tunnel = await this.#admit(reading.target, "connect", (own) => endWith(client, own));
    if (tunnel === undefined) return;
    if (this.#credentials?.serves(tunnel.target) === true) {
      client.write(tunnelOpened);
      return this.#credentials.accept(client, head, tunnel, (socket, rest) =>
        this.accept(socket, rest, tunnel),
      );
    }
    const upstream = await this.#dial(tunnel, client, (own) => endWith(client, own));
    if (upstream === undefined) return;
    client.write(tunnelOpened);
    await carryTunnel(this.#gate, tunnel, client, head, upstream, (socket, rest) =>
      this.accept(socket, rest, tunnel),
    );
  }

  /** From a request to a connection: refused, failed, or connected. Responds in the first two cases. */
  async #route(
    request: IncomingMessage,
    respond: (own: OwnResponse) => void,
  ): Promise<UpstreamRoute | undefined> {
    const inside = this.#clients.tunnelOf(request.socket);
    if (inside === "own") return void respond(unusable(400, "a tunnel can't lead to another proxy"));
    const destination = this.#gate.checks.destination(request, inside);
    if (!destination.ok) {
      if (destination.kind === "unusable") return void respond(unusable(400, destination.reason));
      const shown = inside?.target ??
        destination.target ?? { host: escapeForReport(destination.raw), port: 0 };
      this.#gate.report(shown, inside?.protocol ?? "http", { allowed: false, reason: destination.reason });
      return void respond(refusal(shown, destination.reason));
    }
    const exposed = this.#credentials?.whyNotInTheClear(request);
    if (exposed !== undefined) {
      this.#gate.report(destination.target, inside?.protocol ?? "http", { allowed: false, reason: exposed });
      return void respond(refusal(destination.target, exposed));
    }
    const coding = valuesOf(request, "transfer-encoding").join().toLowerCase();
    if (coding !== "" && coding !== "chunked")
      return void respond(unusable(501, "the only supported transfer coding is chunked"));
    const tunnel = inside ?? (await this.#admit(destination.target, "http", respond));
    if (tunnel === undefined) return;
    const upstream = await this.#dial(tunnel, request.socket, respond);
    if (upstream === undefined) return;
    if (inside === undefined) this.#gate.reportOpened(tunnel, upstream);
    return {
      target: destination.target,
      path: destination.path,
      upstream,
      onFailure: (reason) => this.#gate.reportFailure(tunnel, reason),
    };
  }

  async #admit(
    target: Target,
    protocol: EgressProtocol,
    respond: (own: OwnResponse) => void,
  ): Promise<AdmittedDestination | undefined> {
    const admission = await this.#gate.admitOrReport(target, protocol);
    if (admission instanceof UpstreamFailure)
      return void respond(upstreamFailure(target, admission.status, admission.message));
    if (!admission.decision.allowed) return void respond(refusal(target, admission.decision.reason));
    return { target, protocol, addresses: admission.addresses, decision: admission.decision };
  }

  async #dial(
    tunnel: AdmittedDestination,
    client: Duplex,
    respond: (own: OwnResponse) => void,
  ): Promise<Socket | undefined> {
    const upstream = await this.#gate.dialOrReport(tunnel, client);
    if (!(upstream instanceof UpstreamFailure)) return upstream;
    return void respond(upstreamFailure(tunnel.target, upstream.status, upstream.message));
  }
}

const tunnelOpened = "HTTP/1.1 200 Connection established\r\n\r\n";

function isWebSocket(request: IncomingMessage): boolean {
  return valuesOf(request, "upgrade").join().toLowerCase() === "websocket";
}
