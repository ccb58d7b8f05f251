import { type KeyObject, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Server as Listener } from "node:net";
import type { Duplex } from "node:stream";
import { AtCapacity, type Log } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import { PacedConnection, pacedListener } from "@ambit/egress/paced-connection";
import { noPreviews, type PortOfSession, type Preview, type PreviewService } from "@ambit/runner";
import { ConfigurationInvalid } from "../configuration/problems.js";
import type { PreviewSettings } from "../configuration/schema.js";
import { isLoopback } from "../http/caller/loopback.js";
import { cantListen } from "../http/connections/address.js";
import { type ConnectionOwner, type ConnectionShares, Connections } from "../http/connections/connections.js";
import { admitCaller, makeTicket, type TicketScope } from "./admit.js";
import { type Forwarded, forwardRequest, forwardUpgrade, type PreviewOrigin, ticketName } from "./forward.js";

/**
 * Connections of all previews. Callers without a ticket displace only each other, and one project leaves half of the places to others.
 * One address may have all of them: a reverse proxy has one.
 */
const sharesByDefault: ConnectionShares = {
  unknown: 256,
  unknownPerPeer: 256,
  known: 1_024,
  tenants: 1_024,
  perTenant: 512,
};
/** Milliseconds within which a request's header must arrive. */
const headersMs = 10_000;

interface OpenPreview extends PreviewOrigin, TicketScope {
  readonly owner: ConnectionOwner;
  readonly connect: PortOfSession["connect"];
  /** Ends each of its connections. */
  readonly ending: Set<() => void>;
}

/**
 * Ports inside sandboxes, on a listener that serves nothing else: each has an origin of its own, which browsers keep apart
 * from the API's and from other sessions'.
 */
export class Previews implements PreviewService {
  readonly #open = new Map<string, OpenPreview>();
  readonly #connections: Connections;
  #serving: { readonly server: Server; readonly listener: Listener } | undefined;
  /** `{ scheme: "http:", domain: "localhost", authority: "localhost:8767" }`. */
  #at: { readonly scheme: string; readonly domain: string; readonly authority: string } | undefined;

  constructor(
    private readonly settings: PreviewSettings,
    private readonly key: () => Promise<KeyObject>,
    private readonly log: Log,
    /** The headers in which callers may present their token for the API. */
    private readonly tokenHeaders: readonly string[],
    shares = sharesByDefault,
  ) {
    this.#connections = new Connections(shares);
  }

  issues(request: RunRequest): ReturnType<PreviewService["issues"]> {
    return this.#at === undefined ? noPreviews.issues(request) : [];
  }

  /** Listens, if it is configured. @throws ConfigurationInvalid */
  async listen(): Promise<void> {
    const { host, port, url, idleMs } = this.settings;
    if (port === undefined) return;
    if (url === undefined && !isLoopback(host)) {
      const message = `url is needed where previews listen on ${host}: set it to the wildcard origin that leads there, such as "https://*.preview.example.com"`;
      throw new ConfigurationInvalid("server.preview", [message]);
    }
    const server = createServer(
      { headersTimeout: headersMs, requestTimeout: 0, connectionsCheckingInterval: 1_000 },
      (request, response) => void this.#request(request, response),
    );
    this.#connections.count(server);
    server.setTimeout(idleMs);
    server.on("upgrade", (request, socket, head) => void this.#upgrade(request, socket, head));
    const listener = pacedListener(server);
    const bound = await new Promise<number>((resolve, reject) => {
      listener.once("error", (cause) => reject(cantListen("server.preview", host, port, cause)));
      listener.listen({ host, port }, () => {
        const address = listener.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
    const wildcard = url ?? `http://*.localhost:${bound}`;
    // The star is no host name.
    const { protocol, hostname, host: authority } = new URL(wildcard.replace("*.", ""));
    this.#at = { scheme: protocol, domain: hostname, authority };
    this.#serving = { server, listener };
    this.log.info({ host, port: bound, origins: wildcard }, "previews are served");
  }

  open({ port, project, connect }: PortOfSession): Preview {
    if (this.#at === undefined) throw new Error("Previews aren't served.");
    const label = randomBytes(16).toString("hex");
    const origin = `${this.#at.scheme}//${label}.${this.#at.authority}`;
    const owner = project === undefined ? "operator" : { project };
    const { tokenHeaders, settings } = this;
    const { frameAncestors } = settings;
    const ending = new Set<() => void>();
    const preview: OpenPreview = {
      label,
      port,
      origin,
      owner,
      connect,
      tokenHeaders,
      frameAncestors,
      ending,
    };
    this.#open.set(label, preview);
    return {
      link: async () => {
        const expiresAt = Date.now() + this.settings.ttlMs;
        const ticket = makeTicket(await this.key(), preview, expiresAt);
        return {
          url: `${origin}/?${ticketName}=${ticket}`,
          expiresAt: new Date(expiresAt).toISOString(),
        };
      },
      close: () => {
        this.#open.delete(label);
        for (const end of preview.ending) end();
      },
    };
  }

  async close(): Promise<void> {
    if (this.#serving === undefined) return;
    const { server, listener } = this.#serving;
    for (const { ending } of this.#open.values()) for (const end of ending) end();
    this.#open.clear();
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    // It looks at no deadline any more.
    server.close();
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refuse = (status: number, reason: string, headers: Record<string, string> = {}) => {
      if (response.destroyed || response.headersSent) return void response.destroy();
      response.writeHead(status, { ...plain, connection: "close", ...headers }).end(`${reason}\n`);
    };
    const entered = await this.#enter(request, response, refuse);
    if (entered === undefined) return;
    forwardRequest(request, response, entered, () => refuse(502, unavailable));
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    // The server's own limit no longer counts for it.
    if (socket instanceof PacedConnection)
      socket.setTimeout(this.settings.idleMs).on("timeout", () => socket.destroy());
    const refuse = (status: number, reason: string) => {
      const lines = [
        `HTTP/1.1 ${status} Refused`,
        "connection: close",
        `content-length: ${reason.length + 1}`,
      ];
      socket.end(`${[...lines, "", ""].join("\r\n")}${reason}\n`);
    };
    if (request.headers.upgrade?.toLowerCase() !== "websocket")
      return refuse(400, "Only WebSocket is passed on.");
    const entered = await this.#enter(request, socket, refuse);
    if (entered === undefined) return;
    this.#connections.upgraded(socket);
    forwardUpgrade(request, socket, head, entered, () => refuse(502, unavailable));
  }

  /** The way to the program inside for a caller that may have it; anyone else gets a refusal. Never rejects. */
  async #enter(
    request: IncomingMessage,
    side: ServerResponse | Duplex,
    refuse: (status: number, reason: string, headers?: Record<string, string>) => void,
  ): Promise<Forwarded | undefined> {
    const preview = this.#named(request.headers.host);
    if (preview === undefined)
      return void refuse(404, "There is no such preview: its session may have ended.");
    try {
      const admission = admitCaller(request, preview, await this.key(), Date.now());
      if (admission.kind === "refused") return void refuse(403, admission.reason);
      if (admission.kind === "redirect") {
        const { location, cookie } = admission;
        return void refuse(303, "See the preview.", { location, "set-cookie": cookie });
      }
      if (preview.ending.size >= this.settings.maxConnections) return void refuse(503, tooMany);
      this.#connections.admit(request.socket, preview.owner);
      let connection: Duplex | undefined;
      const end = () => {
        clearTimeout(expiry);
        preview.ending.delete(end);
        connection?.destroy();
        side.destroy();
      };
      const expiry = setTimeout(end, admission.expiresAt - Date.now());
      expiry.unref();
      preview.ending.add(end);
      side.once("close", end);
      connection = await preview.connect().catch(() => undefined);
      if (connection === undefined) return void refuse(502, unavailable);
      connection.on("error", () => connection?.destroy());
      // Its session or its caller ended meanwhile.
      if (!preview.ending.has(end)) return void connection.destroy();
      return { preview, path: admission.path, connection };
    } catch (error) {
      if (error instanceof AtCapacity) return void refuse(503, tooMany);
      this.log.error({ error }, "a preview failed");
      return void refuse(500, "The preview failed.");
    }
  }

  #named(host = ""): OpenPreview | undefined {
    const [, label, domain] = /^([0-9a-f]{32})\.([^:]+)(?::\d+)?$/i.exec(host) ?? [];
    if (label === undefined || domain?.toLowerCase() !== this.#at?.domain) return undefined;
    return this.#open.get(label.toLowerCase());
  }
}

const tooMany = "This preview, or its project, has too many connections.";
const unavailable = "Nothing answers on this port inside the sandbox.";

const plain = {
  "content-type": "text/plain; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'",
};
