/**
 * The thread that answers `/health` and `/ready` on a listener of their own, whatever the main event loop does. What it imports
 * needs only Node: loading the server's packages takes longer than starting a thread.
 */
import { createServer, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { whyNotLocal } from "../caller/loopback.js";
import {
  healthAnswer,
  type ProbeRequest,
  probeResponse,
  readProbeRequest,
  readyAnswer,
  type ServerState,
} from "./answers.js";
import type { HealthThreadReport, HealthThreadSettings } from "./health.js";

/**
 * Connections that wait to be accepted. A flood of them fills the queue, whatever its length: with this one, a probe waits 25 ms, or
 * the system repeats its first packet after a second.
 */
const maxWaiting = 511;
const maxHeaderBytes = 4_096;
/** Milliseconds for a request and its response. */
const exchangeTimeoutMs = 2_000;
const nanosecondsPerMs = 1_000_000n;

const settings: HealthThreadSettings = workerData;
const { host, port, maxConnections, stallTimeoutMs, allowedHosts, lastTurn } = settings;
let { state } = settings;
parentPort?.on("message", (next: ServerState) => {
  state = next;
});
const report = (message: HealthThreadReport) => parentPort?.postMessage(message);

/** The set keeps the order in which they were opened. */
const open = new Set<Socket>();

const server = createServer({ noDelay: true }, (socket) => {
  open.add(socket);
  const deadline = setTimeout(() => socket.destroy(), exchangeTimeoutMs);
  socket.once("close", () => {
    open.delete(socket);
    clearTimeout(deadline);
  });
  // A caller that left.
  socket.on("error", () => undefined);
  const [oldest] = open;
  if (open.size > maxConnections) oldest?.destroy();
  let received = "";
  const take = (chunk: string) => {
    received += chunk;
    const end = received.indexOf("\r\n\r\n");
    if (end < 0 && received.length <= maxHeaderBytes) return;
    // One connection is one request: what else it sends isn't read.
    socket.off("data", take).pause();
    socket.end(responseTo(end, received), () => socket.destroy());
  };
  socket.setEncoding("latin1").on("data", take);
});
server.once("error", (error) => report({ error: error.message }));
server.listen({ host, port, backlog: maxWaiting }, () => {
  const address = server.address();
  report({ port: typeof address === "object" && address !== null ? address.port : port });
});

function responseTo(end: number, received: string): string {
  if (end < 0 || end > maxHeaderBytes)
    return probeResponse(431, { error: `A header has ${maxHeaderBytes} bytes at most.` });
  const request = readProbeRequest(received.slice(0, end));
  if (request === undefined) return probeResponse(400, { error: "This isn't an HTTP/1.1 request." });
  return answerTo(request);
}

function answerTo({ method, path, headers }: ProbeRequest): string {
  const foreign = allowedHosts && whyNotLocal(headers, { allowedHosts, origins: [] });
  if (foreign !== undefined) return probeResponse(403, { error: foreign });
  if (path !== "/health" && path !== "/ready")
    return probeResponse(404, { error: "Use GET /health or GET /ready." });
  if (method !== "GET" && method !== "HEAD")
    return probeResponse(405, { error: `Use GET ${path}.` }, { allow: "GET, HEAD" });
  const stalledForMs = stalledFor();
  const { status, body } =
    path === "/health" ? healthAnswer(state, stalledForMs) : readyAnswer(state.ready, stalledForMs);
  return probeResponse(status, body, status === 503 ? { "retry-after": "1" } : {}, method === "HEAD");
}

/** How long the main event loop hasn't turned, where that is longer than allowed. */
function stalledFor(): number | undefined {
  const ms = Number((process.hrtime.bigint() - Atomics.load(lastTurn, 0)) / nanosecondsPerMs);
  return ms > stallTimeoutMs ? ms : undefined;
}
