import { createServer, type Server, type Socket } from "node:net";
import type { NetworkBoundary, UpstreamProxy } from "@ambit/core/plugin";
import type { ProxyCredentials } from "../credentials/values.js";
import { addressesOfThisHost, type Lookup, lookupOnThisHost } from "../guarded-lookup.js";
import {
  ClientAdmission,
  defaultProxyLimits,
  type EgressLimits,
  type Share,
  serverBudget,
} from "./clients.js";
import { CredentialProxy } from "./credentials/credential-proxy.js";
import { type EgressChecks, type EgressDecision, egressChecks, Gate, OpenSockets } from "./gate.js";
import { bytesOf, type OwnServer, unusable } from "./http/own-response.js";
import { HttpProxy } from "./http-proxy.js";

import { SocketReader } from "./socket-reader.js";
import { refuseSocks4, serveSocks5 } from "./socks.js";

export interface EgressProxyOptions {
  /** A unix socket to listen on, or a server whose connections are served (with `allowHalfOpen`, listening or not). */
  readonly listen: { readonly path: string } | { readonly server: Server };
  /** `off` and an empty list deny everything. `on` is refused: an unrestricted network needs no proxy. */
  readonly policy: NetworkBoundary;
  /**
   * Called for every attempt, with its decision. If it throws, the connection is closed: no connection without a
   * record.
   */
  readonly onDecision: (decision: EgressDecision) => void;
  /** While it says true, every connection is refused. Default: the policy alone decides. */
  readonly isUnclaimed?: () => boolean | Promise<boolean>;
  /** Default: the host's resolver. */
  readonly lookup?: Lookup;
  /** The deployer's proxy, on the way to what is allowed. Default: connections are direct. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /** The runner's own addresses. Default: those of its interfaces, read again for each connection. */
  readonly hostAddresses?: () => readonly string[];
  readonly limits?: Partial<EgressLimits>;
  /** What the session itself serves at the same address. Default: nothing. */
  readonly own?: OwnServer;
  /** The session's credentials, which are added to requests to their hosts. Default: none, and TLS isn't terminated. */
  readonly credentials?: ProxyCredentials;
  /** This session's share of the server's connections. Default: of this process's budget. */
  readonly share?: Share;
  /** Default: every name that a client sends must be the allowed one. */
  readonly checks?: EgressChecks;
  /** An error of the proxy itself; its connection is already closed. Default: a process warning. */
  readonly onFault?: (fault: unknown) => void;
}

export interface EgressProxy {
  /** Open sockets, to clients and to servers. */
  readonly openSockets: number;
  /** Closes every connection immediately and stops listening; removes the unix socket's file. Safe to call twice. */
  close(): Promise<void>;
}

const SOCKS5 = 5;
const SOCKS4 = 4;

/**
 * Opens one session's proxy. Every client of the socket counts as that session: pass it to one sandbox only.
 *
 * Not stopped: a request for another host inside TLS to a listed one (domain fronting, or the inner name of an
 * encrypted ClientHello), which only a proxy that terminates TLS could see; protocols other than TLS and HTTP that
 * name another host; and anything that a listed host does with the data that it gets.
 *
 * @throws TypeError for a policy that restricts nothing.
 */
export async function openEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  if (options.policy.mode === "on") {
    throw new TypeError("The egress proxy never runs unrestricted: don't open one for a network that is on");
  }
  const limits = { ...defaultProxyLimits, ...options.limits };
  const sockets = new OpenSockets();
  const gate = new Gate({
    policy: options.policy,
    isUnclaimed: options.isUnclaimed ?? (() => false),
    lookup: options.lookup ?? lookupOnThisHost,
    hostAddresses: options.hostAddresses ?? addressesOfThisHost,
    onDecision: options.onDecision,
    limits,
    sockets,
    checks: options.checks ?? egressChecks,
    upstreamProxy: options.upstreamProxy,
  });
  const onFault =
    options.onFault ??
    ((fault) => process.emitWarning(fault instanceof Error ? fault : new Error(String(fault))));
  const cut = (fault: unknown, client: { destroy(): void }) => {
    client.destroy();
    onFault(fault);
  };
  const credentials =
    options.credentials === undefined ? undefined : new CredentialProxy(gate, options.credentials, cut);
  const http = new HttpProxy(gate, options.own, credentials, cut);
  const admission = new ClientAdmission(limits.connections, options.share ?? serverBudget().join());
  let closed = false;

  const serve = async (client: Socket): Promise<void> => {
    if (closed) return void client.destroy();
    sockets.add(client);
    const refused = admission.admit(client);
    if (refused !== undefined) {
      client.end(bytesOf(unusable(503, refused.reason)), () => client.destroy());
      if (refused.isFirst) {
        gate.report({ host: "unknown", port: 0 }, "unknown", { allowed: false, reason: refused.reason });
      }
      return;
    }
    const reader = new SocketReader(client);
    const deadline = setTimeout(() => client.destroy(), limits.handshakeMs);
    await reader.peek(1);
    clearTimeout(deadline);
    const head = reader.release();
    if (head.length === 0) return void client.destroy();
    if (head[0] === SOCKS5) {
      const serveHttp = http.accept.bind(http);
      await serveSocks5(gate, client, head, options.own?.port, serveHttp, credentials);
    } else if (head[0] === SOCKS4) {
      await refuseSocks4(gate, client, head);
    } else {
      http.accept(client, head);
    }
  };

  const server = "server" in options.listen ? options.listen.server : createServer({ allowHalfOpen: true });
  server.on("connection", (client) => {
    serve(client).catch((fault: unknown) => cut(fault, client));
  });
  if ("path" in options.listen) await listenOn(server, options.listen.path);
  server.on("error", onFault);

  return {
    get openSockets() {
      return sockets.size;
    },
    async close() {
      closed = true;
      const stopped = server.listening
        ? new Promise<void>((resolve) => server.close(() => resolve()))
        : undefined;
      gate.close();
      admission.close();
      credentials?.close();
      await stopped;
    },
  };
}

function listenOn(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
