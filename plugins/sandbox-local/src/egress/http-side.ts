import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { formatTarget, readAuthority, type Target } from "@ambit/core/plugin";
import { type Answer, answerBytes, answerHeaders, refusal, unusable, upstreamFailure } from "./answers.js";
import { type Admitted, type EgressProtocol, escapeForReport, type Gate, UpstreamFailure } from "./gate.js";
import { valuesOf } from "./http-destination.js";
import { copyRequestHeaders, responseHeaders } from "./http-headers.js";
import { carryTunnel, join } from "./tunnel.js";

interface Route {
  readonly target: Target;
  readonly path: string;
  readonly upstream: Socket;
}

/**
 * HTTP in absolute form and CONNECT. Node's own parser reads both sides, and each request is written anew, on a
 * connection of its own: what it smuggles for another reader never leaves.
 */
export class HttpSide {
  readonly #gate: Gate;
  readonly #server: Server;
  /** Clients inside a tunnel that turned out to speak cleartext HTTP. */
  readonly #tunnels = new WeakMap<Duplex, Admitted>();
  /** Pipelined requests wait for the answer before theirs: they arrive in order, one server connection per client. */
  readonly #turns = new WeakMap<Duplex, Promise<void>>();
  /** Requests not yet answered, by client: a CONNECT among them would mix their answers into the tunnel. */
  readonly #unanswered = new WeakMap<Duplex, number>();

  constructor(gate: Gate, onFault: (fault: unknown, client: Duplex) => void) {
    this.#gate = gate;
    const server = createServer({ maxHeaderSize: gate.limits.headerBytes, insecureHTTPParser: false });
    // Headers beyond a count would be dropped silently, Content-Length among them; their size is bounded already.
    server.maxHeadersCount = 0;
    server.timeout = gate.limits.idleMs;
    server.on("request", (request, response) => {
      const client = request.socket;
      this.#count(client, 1);
      const turn = this.#turns.get(client) ?? Promise.resolve();
      this.#turns.set(client, new Promise((resolve) => response.once("close", resolve)));
      response.once("close", () => this.#count(client, -1));
      turn
        .then(() => (client.destroyed ? undefined : this.#serve(request, response)))
        .catch((fault: unknown) => onFault(fault, client));
    });
    server.on("upgrade", (request, client, head) => {
      this.#upgrade(request, client as Socket, head).catch((fault: unknown) => onFault(fault, client));
    });
    server.on("connect", (request, client, head) => {
      this.#connect(request, client as Socket, head).catch((fault: unknown) => onFault(fault, client));
    });
    server.on("clientError", (error: NodeJS.ErrnoException, client) => {
      // Behind an answer that is still being written, another would become part of its body.
      if (error.code === "ECONNRESET" || !client.writable || (this.#unanswered.get(client) ?? 0) > 0) {
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

  /** Serves a client from here on. The socket is paused, `head` is what it has sent already. */
  accept(client: Socket, head: Buffer, tunnel?: Admitted): void {
    if (tunnel !== undefined) this.#tunnels.set(client, tunnel);
    if (head.length > 0) client.unshift(head);
    this.#server.emit("connection", client);
    client.resume();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = await this.#route(request, (answer) => {
      response.writeHead(answer.status, answer.statusText, answerHeaders(answer));
      response.end(answer.body);
    });
    if (route === undefined) return;
    const { target, path, upstream } = route;
    if (response.destroyed) return void upstream.destroy();
    const outgoing = httpRequest({
      method: request.method,
      path,
      setHost: false,
      maxHeaderSize: this.#gate.limits.headerBytes,
      // Node ignores createConnection as soon as an agent is named, and would look the host up itself.
      createConnection: () => upstream,
    });
    response.once("close", () => outgoing.destroy());
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      const answer = upstreamFailure(target, 502, `the server broke off (${error.code ?? error.message})`);
      response.writeHead(answer.status, answer.statusText, answerHeaders(answer));
      response.end(answer.body);
    });
    outgoing.once("response", (incoming) => {
      response.sendDate = false;
      try {
        response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, responseHeaders(incoming));
      } catch (cause) {
        outgoing.destroy(new Error("the server's header can't be passed on", { cause }));
        return;
      }
      // A stream of events has a header long before its first byte of body.
      response.flushHeaders();
      // An error on either side has destroyed both: the client sees a cut body, never a complete one.
      pipeline(incoming, response, () => {});
    });
    outgoing.setHeader("Host", hostHeader(target));
    copyRequestHeaders(request, outgoing);
    if (valuesOf(request, "transfer-encoding").length > 0) outgoing.setHeader("Transfer-Encoding", "chunked");
    else if (valuesOf(request, "content-length").length === 0) return void outgoing.end();
    outgoing.flushHeaders();
    request.pipe(outgoing);
  }

  /** A WebSocket in the clear. Other upgrades change to protocols whose host we couldn't compare. */
  async #upgrade(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    if ((this.#unanswered.get(client) ?? 0) > 0) return void client.destroy();
    if (valuesOf(request, "upgrade").join().toLowerCase() !== "websocket") {
      return endWith(client, unusable(501, "it passes upgrades to websocket only"));
    }
    const route = await this.#route(request, (answer) => endWith(client, answer));
    if (route === undefined) return;
    const { target, path, upstream } = route;
    const outgoing = httpRequest({
      method: request.method,
      path,
      setHost: false,
      maxHeaderSize: this.#gate.limits.headerBytes,
      // Node ignores createConnection as soon as an agent is named, and would look the host up itself.
      createConnection: () => upstream,
    });
    client.once("close", () => outgoing.destroy());
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      endWith(client, upstreamFailure(target, 502, `the server broke off (${error.code ?? error.message})`));
    });
    outgoing.once("upgrade", (incoming, socket, upstreamHead) => {
      const headers = [...responseHeaders(incoming), "Connection", "Upgrade", "Upgrade", "websocket"];
      const lines = headers.flatMap((name, index) =>
        index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ""}`] : [],
      );
      client.write(
        Buffer.from(`${["HTTP/1.1 101 Switching Protocols", ...lines].join("\r\n")}\r\n\r\n`, "latin1"),
      );
      client.write(upstreamHead);
      join(client, head, socket, this.#gate.limits);
    });
    outgoing.once("response", (incoming) => {
      const response = new ServerResponse(request);
      response.assignSocket(client);
      response.shouldKeepAlive = false;
      response.writeHead(incoming.statusCode ?? 502, responseHeaders(incoming));
      pipeline(incoming, response, () => client.end(() => client.destroy()));
    });
    outgoing.setHeader("Host", hostHeader(target));
    copyRequestHeaders(request, outgoing);
    outgoing.setHeader("Connection", "Upgrade");
    outgoing.setHeader("Upgrade", "websocket");
    outgoing.end();
  }

  async #connect(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    if ((this.#unanswered.get(client) ?? 0) > 0) return void client.destroy();
    if (this.#tunnels.has(client)) {
      return endWith(client, unusable(400, "a tunnel doesn't lead to another proxy"));
    }
    const raw = request.url ?? "";
    const reading = readAuthority(raw);
    if (!reading.ok) {
      const shown = { host: escapeForReport(raw), port: 0 };
      this.#gate.report(shown, "connect", { allowed: false, reason: reading.why });
      return endWith(client, refusal(shown, reading.why));
    }
    const tunnel = await this.#admit(reading.target, "connect", (answer) => endWith(client, answer));
    if (tunnel === undefined) return;
    const upstream = await this.#dial(tunnel, (answer) => endWith(client, answer));
    if (upstream === undefined) return;
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    await carryTunnel(this.#gate, tunnel, client, head, upstream, (socket, rest) =>
      this.accept(socket, rest, tunnel),
    );
  }

  /** From a request to a connection: refused, failed, or dialled. Answers in the first two cases. */
  async #route(request: IncomingMessage, answer: (answer: Answer) => void): Promise<Route | undefined> {
    const inside = this.#tunnels.get(request.socket);
    const destination = this.#gate.checks.destination(request, inside);
    if (!destination.ok) {
      if (destination.kind === "unusable") return void answer(unusable(400, destination.reason));
      const shown = inside?.target ?? { host: escapeForReport(destination.raw), port: 0 };
      this.#gate.report(shown, inside?.protocol ?? "http", { allowed: false, reason: destination.reason });
      return void answer(refusal(shown, destination.reason));
    }
    const coding = valuesOf(request, "transfer-encoding").join().toLowerCase();
    if (coding !== "" && coding !== "chunked")
      return void answer(unusable(501, "it knows no transfer coding but chunked"));
    const tunnel = inside ?? (await this.#admit(destination.target, "http", answer));
    if (tunnel === undefined) return;
    const upstream = await this.#dial(tunnel, answer);
    if (upstream === undefined) return;
    if (inside === undefined) this.#gate.reportOpened(tunnel, upstream);
    return { target: destination.target, path: destination.path, upstream };
  }

  async #admit(
    target: Target,
    protocol: EgressProtocol,
    answer: (answer: Answer) => void,
  ): Promise<Admitted | undefined> {
    const admission = await this.#gate.admitOrReport(target, protocol);
    if (admission instanceof UpstreamFailure)
      return void answer(upstreamFailure(target, admission.status, admission.message));
    if (!admission.decision.allowed) return void answer(refusal(target, admission.decision.reason));
    return { target, protocol, addresses: admission.addresses, decision: admission.decision };
  }

  async #dial(tunnel: Admitted, answer: (answer: Answer) => void): Promise<Socket | undefined> {
    const upstream = await this.#gate.dialOrReport(tunnel);
    if (!(upstream instanceof UpstreamFailure)) return upstream;
    return void answer(upstreamFailure(tunnel.target, upstream.status, upstream.message));
  }

  #count(client: Duplex, change: 1 | -1): void {
    this.#unanswered.set(client, (this.#unanswered.get(client) ?? 0) + change);
  }
}

function hostHeader(target: Target): string {
  const full = formatTarget(target);
  return target.port === 80 ? full.slice(0, -":80".length) : full;
}

function endWith(client: Duplex, answer: Answer): void {
  client.end(answerBytes(answer), () => client.destroy());
}
