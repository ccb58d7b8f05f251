import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { KeptPieces } from "@ambit/core/plugin";
import { lfsDownload } from "../../credentials/git.js";
import { type CredentialVerdict, findPlaceholder, judgeCredentials } from "../../credentials/judge.js";
import { TrustedServers, UpstreamAgent } from "../../credentials/upstream.js";
import type { ProxyCredentials } from "../../credentials/values.js";
import type { AdmittedDestination } from "../../decide.js";
import type { Target } from "../../target.js";
import { type EgressLimits, HttpClients } from "../clients.js";
import type { Gate } from "../gate.js";
import { valuesOf } from "../http/destination.js";
import { SocketReader } from "../socket-reader.js";
import { TLS_ACCESS_DENIED } from "../tunnel/tunnel.js";
import { Decoders, forward, sendText } from "./forward.js";

/**
 * Serves the hosts of a session's credentials: terminates TLS, checks each request, and forwards it over a verified
 * connection with the value instead of its placeholder. HTTP/1.1 only, without upgrades.
 */
export class CredentialProxy {
  readonly #gate: Gate;
  readonly #broker: ProxyCredentials;
  readonly #server: Server;
  readonly #clients: HttpClients;
  readonly #trusted: TrustedServers;
  readonly #decoders = new Decoders();
  readonly #agents = new WeakMap<Duplex, UpstreamAgent>();
  readonly #onFault: (fault: unknown, client: Duplex) => void;

  constructor(gate: Gate, broker: ProxyCredentials, onFault: (fault: unknown, client: Duplex) => void) {
    this.#gate = gate;
    this.#broker = broker;
    this.#onFault = onFault;
    this.#clients = new HttpClients(gate.limits);
    this.#trusted = new TrustedServers(broker.trust);
    const server = createServer({ maxHeaderSize: gate.limits.headerBytes, insecureHTTPParser: false });
    server.maxHeadersCount = 0;
    server.timeout = gate.limits.idleMs;
    server.on("request", (request, response) => {
      const client = request.socket;
      this.#clients
        .begin(request, response)
        ?.then(() => (client.destroyed ? undefined : this.#serve(request, response)))
        .catch((fault: unknown) => onFault(fault, client));
    });
    // A response of the proxy couldn't be distinguished from one that is still being written.
    server.on("clientError", (_error, client) => client.destroy());
    this.#server = server;
  }

  close(): void {
    this.#decoders.close();
  }

  /** Whether a tunnel to this target is handled here. */
  serves(target: Target): boolean {
    return this.#broker.credentialsFor(target).length > 0;
  }

  /** Why an unencrypted request may not be sent: it contains a placeholder. Undefined if it contains none. */
  whyNotInTheClear(request: IncomingMessage): string | undefined {
    const { method = "", url = "", rawHeaders } = request;
    const exposed = findPlaceholder({ method, url, rawHeaders }, this.#broker.credentials);
    return exposed === undefined
      ? undefined
      : `${exposed.name} is sent only over TLS, and this connection isn't encrypted`;
  }

  /**
   * Serves a tunnel that was allowed but isn't connected yet. The socket is paused; `head` is what it has sent.
   *
   * @param serveHttp takes over a client that speaks cleartext HTTP.
   */
  async accept(
    client: Socket,
    head: Buffer,
    tunnel: AdmittedDestination,
    serveHttp: (client: Socket, head: Buffer) => void,
  ): Promise<void> {
    const { target, protocol, addresses, decision } = tunnel;
    const reader = new SocketReader(client, head);
    const deadline = setTimeout(() => client.destroy(), this.#gate.limits.handshakeMs);
    const refuse = (reason: string, alert: boolean) => {
      clearTimeout(deadline);
      this.#gate.report(target, protocol, { allowed: false, reason }, addresses[0]);
      if (alert) client.write(TLS_ACCESS_DENIED);
      client.end(() => client.destroy());
    };
    for (let needed = 1; ; ) {
      const bytes = await reader.peek(needed);
      if (bytes.length === 0) break;
      const flight = this.#gate.checks.firstFlight(target, bytes, bytes.length < needed);
      if (flight.verdict === "wait") {
        needed = flight.needed;
        continue;
      }
      const rest = reader.release();
      if (flight.verdict === "refuse") return refuse(flight.reason, flight.tls);
      if (flight.verdict === "http") {
        clearTimeout(deadline);
        return serveHttp(client, rest);
      }
      if (rest[0] !== TLS_HANDSHAKE)
        return refuse(`${target.host} has credentials and is reached only over TLS`, false);
      const names = this.#broker.credentialsFor(target).map(({ name }) => name);
      const reason = `${decision.reason}; TLS ends here for ${names.join(", ")}`;
      this.#gate.report(target, protocol, { ...decision, reason }, addresses[0]);
      return await this.#endTls(client, rest, tunnel, deadline);
    }
    clearTimeout(deadline);
    client.destroy();
  }

  async #endTls(
    client: Socket,
    head: Buffer,
    tunnel: AdmittedDestination,
    deadline: NodeJS.Timeout,
  ): Promise<void> {
    const secureContext = await this.#broker.contextFor(tunnel.target.host);
    if (client.destroyed) return clearTimeout(deadline);
    client.unshift(head);
    const tls = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
    // A client that disconnects, or doesn't trust the authority: there is nothing to respond to.
    tls.on("error", () => tls.destroy());
    // A client without a request that half-closes: the server's side would otherwise wait for the time limit.
    tls.once("end", () => {
      if (!this.#clients.hasUnanswered(tls)) tls.destroy();
    });
    tls.once("close", () => {
      clearTimeout(deadline);
      client.destroy();
      this.#agents.get(tls)?.destroy();
    });
    tls.once("secure", () => {
      clearTimeout(deadline);
      const { target } = tunnel;
      const open = async () => {
        const socket = await this.#gate.dial(tunnel, tls);
        // A server that doesn't shake hands, or a client that leaves meanwhile, ends the connection.
        const end = () => void socket.destroy();
        const deadline = setTimeout(end, this.#gate.limits.handshakeMs);
        tls.once("close", end);
        if (tls.destroyed) end();
        return await this.#trusted.open(socket, target).finally(() => clearTimeout(deadline));
      };
      this.#agents.set(tls, new UpstreamAgent(open));
      this.#clients.open(tls, tunnel);
      this.#server.emit("connection", tls);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const tunnel = this.#clients.tunnelOf(request.socket);
    const agent = this.#agents.get(request.socket);
    if (tunnel === undefined || tunnel === "own" || agent === undefined) return void request.socket.destroy();
    const { target, protocol } = tunnel;
    const refuse = (reason: string) => {
      this.#gate.report(target, protocol, { allowed: false, reason }, tunnel.addresses[0]);
      sendText(response, 403, reason);
    };
    if (valuesOf(request, "upgrade").join().toLowerCase().includes("websocket")) {
      const reason = "hosts with credentials don't allow upgrades: use plain HTTP/1.1";
      this.#gate.reportFailure(tunnel, reason);
      return sendText(response, 426, reason);
    }
    const destination = this.#gate.checks.destination(request, tunnel);
    if (!destination.ok) return refuse(destination.reason);
    const coding = valuesOf(request, "transfer-encoding").join().toLowerCase();
    if (coding !== "" && coding !== "chunked")
      return sendText(response, 501, "the only supported transfer coding is chunked");
    const { method = "", rawHeaders } = request;
    const judge = (): CredentialVerdict =>
      judgeCredentials({ method, url: destination.path, rawHeaders }, target, this.#broker.credentials);
    const judged = judge();
    if (judged.verdict === "refuse") return refuse(judged.reason);
    let body: string | undefined;
    if (judged.body !== undefined) {
      const sent = await readBody(request, this.#gate.limits);
      body = sent === undefined ? undefined : lfsDownload(sent.toString());
      if (body === undefined) {
        return refuse(
          "the credential is for reading only (its access), and this git LFS batch is no download",
        );
      }
    }
    const missing = await this.#broker.ready(judged.names);
    if (missing !== undefined) return refuse(missing);
    // With the values of now: the request may have waited for a new one.
    const ready = judge();
    if (ready.verdict === "refuse") return refuse(ready.reason);
    forward(request, response, {
      target,
      path: destination.path,
      rawHeaders: ready.rawHeaders,
      body,
      agent,
      replacements: () => this.#broker.replacementsFor(target),
      decoders: this.#decoders,
      limits: this.#gate.limits,
      onFailure: (reason) => this.#gate.reportFailure(tunnel, reason),
      onFault: (fault) => this.#onFault(fault, request.socket),
    });
  }
}

const TLS_HANDSHAKE = 0x16;

/** A git LFS batch names a hundred objects, 100 bytes each. */
const maxBytes = 256 * 1024;

/** A small body; undefined if it is larger or incomplete. */
export async function readBody(
  request: IncomingMessage,
  { bodyMs }: EgressLimits,
): Promise<Buffer | undefined> {
  const pieces = new KeptPieces();
  let length = 0;
  const timer = setTimeout(() => request.destroy(), bodyMs);
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) return undefined;
      pieces.push(chunk);
    }
    return pieces.take();
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
