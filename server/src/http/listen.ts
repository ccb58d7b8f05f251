import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { Server as Listener } from "node:net";
import { codeOf, type Log, StoreFailed } from "@ambit/core";
import type { Store } from "@ambit/durable/store";
import { openFilesLimit } from "@ambit/egress/open-files";
import { pacedListener } from "@ambit/egress/paced-connection";
import { notifyServing } from "@ambit/runner";
import { getRequestListener } from "@hono/node-server";
import { keepLocalToken, type LocalToken } from "../local-token.js";
import type { Ambit } from "../open.js";
import { releaseYoungHeap } from "../process-resources.js";
import { openStore, pageSealing, recordInMemory, recordInStore } from "../recording.js";
import { PageTokens } from "../tenants/page-grant.js";
import { SharedQuotas } from "../tenants/shared-quotas.js";
import { version } from "../version.js";
import { serverApp } from "./app.js";
import { Bodies } from "./body.js";
import { takeTokenOfUrl } from "./caller/admit-caller.js";
import { isLoopback } from "./caller/loopback.js";
import { type OperatorAccess, operatorAccess } from "./caller/operator-access.js";
import { cantListen, urlOf } from "./connections/address.js";
import { Connections, healthConnections, sharesOf } from "./connections/connections.js";
import { Console } from "./console/console.js";
import { InnerApi } from "./doors/inner-api.js";
import type { ServerState } from "./health/answers.js";
import { HealthListener, Readiness } from "./health/health.js";
import { hostResponse } from "./host-route.js";
import { stateOf } from "./metrics.js";
import { UnreadTexts } from "./response/records.js";
import { Beginnings } from "./runs/beginnings.js";
import { Readers } from "./runs/readers.js";
import { RunQueue } from "./runs/run-queue.js";
import type { ServedRuns } from "./server-context.js";
import { Terminals } from "./sessions/terminals.js";

/** Milliseconds that callers get to read the rest of their responses once the runs have ended. */
const closeGraceMs = 2_000;

/** Milliseconds between listening and probing. A run that arrives earlier starts the probes immediately. */
const firstResponsesMs = 25;

/** Connections that wait to be accepted; the system's own limit (net.core.somaxconn) may be lower. */
const maxWaiting = 4_096;

/** Milliseconds between two looks at the deadlines of headers. */
const timeoutCheckMs = 1_000;

/** Requests whose bodies may arrive concurrently, unless more runs are allowed than that. */
const bodiesAtOnce = 256;

/** Total bytes of such bodies; one body has 16 MiB at most. */
const bodyBytesAtOnce = 256 * 1024 * 1024;

export interface RunningServer {
  /** `http://127.0.0.1:8765`. */
  readonly url: string;
  /** `http://127.0.0.1:8766`, which answers `/health` and `/ready`. Undefined if `server.health` has no port. */
  readonly healthUrl: string | undefined;
  /** What callers of this machine send, and the file that holds it. Undefined if a token is configured, or none needed. */
  readonly localToken: Pick<LocalToken, "token" | "file"> | undefined;
  /** Resolves when the store is open. @throws ConfigurationInvalid; until the server is closed, runs get 503 */
  readonly opened: Promise<void>;
  /** Accepts no new requests. Running runs finish within `server.drainMs` or are cancelled, each with its result. */
  close(): Promise<void>;
}

/**
 * Listens, then probes this host in the background, unless it starts with evidence. Runs wait for the probes.
 * @throws ConfigurationInvalid for an address that others can reach, without a token; or one that isn't free.
 */
export async function startServer(ambit: Ambit): Promise<RunningServer> {
  const operator = operatorAccess(ambit);
  const lifecycle = new Lifecycle(ambit);
  // First, and closed last: probes see the start, and everything from then on to the end.
  const health = await startHealthListener(ambit, lifecycle);
  const begun: Undo[] = [];
  return serve(ambit, operator, lifecycle, health, begun).catch(async (error: unknown) => {
    // What stays open keeps the process alive, and a store locked.
    for (const undo of begun.reverse()) {
      const undone = (async () => undo())();
      await undone.catch((fault: unknown) =>
        ambit.log.debug({ error: fault }, "closing after a failed start"),
      );
    }
    await ambit.runner.drain(0);
    await ambit.files.close();
    await health?.close();
    throw error;
  });
}

/** Closes what a start has opened. */
type Undo = () => Promise<void> | void;

/** Undefined if no port is configured for it. @throws ConfigurationInvalid */
async function startHealthListener(
  { settings, log }: Ambit,
  lifecycle: Lifecycle,
): Promise<HealthListener | undefined> {
  const { allowedHosts, health } = settings.server;
  const { host, port, stallTimeoutMs } = health;
  if (port === undefined) return undefined;
  return HealthListener.start({
    host,
    port,
    stallTimeoutMs,
    allowedHosts,
    log,
    maxConnections: healthConnections(openFilesLimit()),
    initialState: await lifecycle.state(),
    state: () => lifecycle.state(),
  });
}

async function serve(
  ambit: Ambit,
  operator: OperatorAccess,
  lifecycle: Lifecycle,
  health: HealthListener | undefined,
  begun: Undo[],
): Promise<RunningServer> {
  const { settings, runner, registry, log, evidence, files, previews } = ambit;
  const { host, port, drainMs, bodyMs, headersTimeoutMs, writeTimeoutMs } = settings.server;
  if (operator.kind === "local") ambit.redaction.hide([operator.token]);
  // The server doesn't start without a store that the configuration names. The default store opens in the background.
  const store = settings.pluginsAreDefault ? undefined : await openStore(ambit);
  if (store !== undefined) begun.push(() => store.close());
  const { opening } = lifecycle;
  const served = () => lifecycle.served();
  const connections = new Connections(sharesOf(settings.server.maxConnections, openFilesLimit()));
  const { respond, inner } = composeApi(ambit, operator, lifecycle, connections);
  begun.push(() => inner.close());
  const timeouts = {
    headersTimeout: headersTimeoutMs,
    // `bodyMs` counts from the header. This is for bodies that no route reads.
    requestTimeout: headersTimeoutMs + bodyMs + timeoutCheckMs,
    connectionsCheckingInterval: timeoutCheckMs,
  };
  const server = createServer(timeouts, (request, response) => {
    takeTokenOfUrl(request);
    // A caller that asks again and again on one connection would hold this server instead of reaching the next one.
    if (lifecycle.isDraining) response.shouldKeepAlive = false;
    // A thousand requests may have arrived in one piece on a connection that the first of them ended.
    if (!request.socket.destroyed) void respond(request, response);
  });
  connections.watch(server, writeTimeoutMs);
  server.on("clientError", (error, socket) => {
    log.debug({ error }, "the client sent no valid HTTP request, or was too slow");
    // Within a response that is being sent, another one would be a part of its body.
    if (socket.writable && !connections.isAnswering(socket)) socket.write(refusalOfConnection(codeOf(error)));
    // Not at the end of what it may still send: a caller that doesn't read never ends its side.
    socket.destroy();
  });
  await previews.listen();
  begun.push(() => previews.close());
  const listener = pacedListener(server);
  const url = await listen(listener, host, port);
  begun.push(() => {
    listener.close();
    server.closeAllConnections();
  });
  const localToken = await tokenOf(operator, url, log);
  if (localToken !== undefined) begun.push(() => localToken.remove());
  serveRuns(ambit, store, url).then(opening.resolve, opening.reject);
  if (store !== undefined) await opening.promise;
  opening.promise.then(({ runs }) => files.retainWith(runs)).catch(() => undefined);
  opening.promise.catch((error: unknown) => log.error({ error }, "the store can't be used"));
  const opened = opening.promise.then(() => undefined);
  opened.catch(() => undefined);
  notifyServing(registry.observers, () => stateOf({ runner, served, log }), log);
  // A probe starts programs, and each start blocks the event loop: first, respond to those that wait for the server.
  const beginning = setTimeout(() => {
    lifecycle.waitsToProbe = false;
    void probeHost(ambit).then(() => {
      runner.prewarm();
      releaseYoungHeap();
    });
  }, firstResponsesMs);
  let closing: Promise<void> | undefined;
  return {
    url,
    healthUrl: health?.url,
    opened,
    localToken,
    close: () => {
      clearTimeout(beginning);
      lifecycle.isDraining = true;
      closing ??= (async () => {
        void health?.tell();
        await localToken?.remove();
        const served = await opening.promise.catch(() => undefined);
        await served?.runs.lease.drain();
        await drain(server, listener, async () => {
          await served?.queue.close();
          await runner.drain(drainMs);
          await served?.runs.close();
          await files.close();
          await previews.close();
        });
        inner.close();
        await evidence?.keep(registry);
        await health?.close();
      })();
      return closing;
    },
  };
}

/** What answers each request: from outside, and of doors. */
function composeApi(ambit: Ambit, operator: OperatorAccess, lifecycle: Lifecycle, connections: Connections) {
  const { settings, runner, tenants, log, files, interactionKey: key } = ambit;
  const { host, allowedHosts, origins, publicUrl = "" } = settings.server;
  const { bodyMs, maxReadersPerRun, maxReadersPerProject, minReadingMs } = settings.server;
  const inner = new InnerApi((request, exchange) => app.fetch(request, exchange));
  const bodies = new Bodies(
    {
      atOnce: Math.max(bodiesAtOnce, settings.limits.concurrentRuns),
      totalBytes: bodyBytesAtOnce,
      bodyMs,
    },
    (bytes) => runner.requireMemory(bytes),
  );
  const app = serverApp({
    runner,
    log,
    bodies,
    operator,
    tenants,
    console: settings.server.console
      ? new Console({ operator, tenants, bodies, key, terminals: settings.server.terminals.enabled })
      : undefined,
    loopback: isLoopback(host),
    allowedHosts,
    origins,
    publicUrl,
    pageTokens: new PageTokens(pageSealing(ambit)),
    connections,
    inner,
    readiness: lifecycle.readiness,
    replicaId: lifecycle.replicaId,
    served: () => lifecycle.served(),
    unread: new UnreadTexts(),
    files,
    readers: new Readers({
      perRun: maxReadersPerRun,
      perProject: maxReadersPerProject,
      minReadingMs,
    }),
    terminals: new Terminals(settings.server.terminals),
    probing: () => lifecycle.probing,
    isDraining: () => lifecycle.isDraining,
    version: version(),
    host: () => hostResponse(ambit),
  });
  const respond = getRequestListener((request, env) => app.fetch(request, env), {
    // The plugins of this process keep the platform's own Request and Response.
    overrideGlobalObjects: false,
    hostname: host,
  });
  return { respond, inner };
}

/** Ambit's API for a client of this process alone. */
interface OpenedApi {
  /** As the operator. */
  readonly fetch: typeof fetch;
  /** Ends its runs and sessions. */
  close(): Promise<void>;
}

/** Opens the API without a listener. Its runs are in the store, beside those of servers. @throws ConfigurationInvalid */
export async function openApi(ambit: Ambit): Promise<OpenedApi> {
  const { runner, registry, files, settings, evidence } = ambit;
  const lifecycle = new Lifecycle(ambit);
  const connections = new Connections(sharesOf(settings.server.maxConnections, openFilesLimit()));
  const { inner } = composeApi(ambit, { kind: "tenants" }, lifecycle, connections);
  lifecycle.waitsToProbe = false;
  const served = await serveRuns(ambit, await openStore(ambit), undefined);
  lifecycle.opening.resolve(served);
  files.retainWith(served.runs);
  void probeHost(ambit);
  return {
    fetch: inner.fetchAs({ kind: "operator" }),
    async close() {
      lifecycle.isDraining = true;
      await served.queue.close();
      await runner.drain(0);
      await served.runs.close();
      await files.close();
      inner.close();
      await evidence?.keep(registry);
    },
  };
}

/** Keeps what it finds for the next process. Never rejects. */
async function probeHost({ registry, evidence, log }: Ambit): Promise<void> {
  try {
    await registry.candidates();
    await evidence?.keep(registry);
  } catch (error) {
    log.error({ error }, "probing failed");
  }
}

const statuses: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
};

function refusalOfConnection(code = ""): string {
  return `HTTP/1.1 ${statuses[code] ?? "400 Bad Request"}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
}

/** Tells callers of this machine how they are let in, where no token is configured. */
async function tokenOf(operator: OperatorAccess, url: string, log: Log): Promise<LocalToken | undefined> {
  if (operator.kind === "everyone")
    log.warn({}, 'server.auth is "none": every program of this machine may start runs, read and answer them');
  if (operator.kind !== "local") return undefined;
  const localToken = await keepLocalToken(operator.token, Number(new URL(url).port));
  log.info({ file: localToken.file }, "no token is configured: callers send the one in this file");
  return localToken;
}

function listen(listener: Listener, host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    listener.once("error", (cause) => reject(cantListen("server", host, port, cause)));
    // With a shorter queue, others wait for a second while somebody opens thousands of connections.
    listener.listen({ port, host, backlog: maxWaiting }, () => {
      const address = listener.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      resolve(urlOf(host, bound));
    });
  });
}

async function drain(server: Server, listener: Listener, drainRuns: () => Promise<void>): Promise<void> {
  const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
  await drainRuns();
  // A connection is idle only once its caller has read the last response, which can't be observed.
  const idle = setInterval(() => server.closeIdleConnections(), 10);
  const closeGrace = setTimeout(() => server.closeAllConnections(), closeGraceMs);
  await closed;
  // It looks at no deadline any more.
  server.close();
  clearInterval(idle);
  clearTimeout(closeGrace);
}

/** How far the start or the end of a server has come. */
class Lifecycle {
  /** Settles when the store is open, if one is loaded, or can't be opened. */
  readonly opening = Promise.withResolvers<ServedRuns>();
  readonly replicaId: string;
  readonly readiness: Readiness;
  /** Whether the server is shutting down: it takes no new runs. */
  isDraining = false;
  /** Whether this host isn't being probed yet, but will be. */
  waitsToProbe = true;

  constructor(readonly ambit: Pick<Ambit, "settings" | "registry" | "log">) {
    // Those that need it await it.
    this.opening.promise.catch(() => undefined);
    this.replicaId = ambit.settings.server.replicaId ?? randomUUID();
    this.readiness = new Readiness({
      served: () => this.served(),
      log: ambit.log,
      isDraining: () => this.isDraining,
    });
  }

  /** @throws StoreFailed when it can't be opened */
  async served(): Promise<ServedRuns> {
    try {
      return await this.opening.promise;
    } catch (cause) {
      throw new StoreFailed("The store can't be opened: the runner's log has the cause.", { cause });
    }
  }

  /** Whether this host is being probed, or soon will be. */
  get probing(): boolean {
    return this.waitsToProbe || this.ambit.registry.probing;
  }

  /** What the server says of itself. */
  async state(): Promise<ServerState> {
    const ready = await this.readiness.look();
    return { probing: this.probing, replicaId: this.replicaId, ready };
  }
}

/**
 * The runs of this process: in the store, if one is loaded, else in memory.
 * @param named the store that the configuration names, which is open.
 * @param address where callers reach this replica. Undefined: this process is its only caller.
 */
async function serveRuns(
  ambit: Ambit,
  named: Store | undefined,
  address: string | undefined,
): Promise<ServedRuns> {
  const { settings, runner, tenants, log } = ambit;
  const store = named ?? (settings.pluginsAreDefault ? await openStore(ambit) : undefined);
  const recording =
    store === undefined ? await recordInMemory(ambit, address) : await recordInStore(ambit, store, address);
  const { runs, sealing, takesOthers } = recording;
  const quotas = new SharedQuotas(runs, tenants.list);
  const { queuedRuns, maxMiB } = runs.options.settings;
  const limits = { queuedRuns, queuedBytes: maxMiB * 1_048_576 };
  const queue = new RunQueue({ runs, runner, sealing, tenants, quotas, log, limits, takesOthers });
  return { ...recording, quotas, queue, beginnings: new Beginnings() };
}
