import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Unauthorized } from "@ambit/core";
import type { CallerRules, CallersTrace, Runner, RunOptions } from "@ambit/runner";
import {
  type Caller,
  callerOf,
  presentedTokens,
  presentsToken,
  principalOf,
  rulesOf,
  setCaller,
} from "../../tenants/caller.js";
import { isPageToken } from "../../tenants/page-grant.js";
import { HttpRefusal } from "../response/refusal.js";
import type { ServerContext } from "../server-context.js";
import { isLoopback } from "./loopback.js";
import { issuerOf } from "./operator-access.js";

const tokens = new WeakMap<IncomingMessage, string>();

/**
 * Takes `?token=` out of a request's URL, before anything reads, logs or traces it. An EventSource and an image can send no
 * header, so pages present their token this way.
 */
export function takeTokenOfUrl(incoming: IncomingMessage): void {
  const { url = "/" } = incoming;
  const start = url.indexOf("?");
  if (start === -1) return;
  const query = new URLSearchParams(url.slice(start + 1));
  const [token, ...others] = query.getAll("token");
  if (token === undefined) return;
  query.delete("token");
  incoming.url = query.size === 0 ? url.slice(0, start) : `${url.slice(0, start)}?${query}`;
  // A request with several tokens presents none of them.
  tokens.set(incoming, others.length === 0 ? token : "");
}

/** The token that was in the request's URL. */
export function tokenOfUrl(incoming: IncomingMessage): string | undefined {
  return tokens.get(incoming);
}

/** Keeps a URL with a token out of other sites' logs and of caches. */
export const urlTokenHeaders: Readonly<Record<string, string>> = {
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/** Headers that a page may send. A token among them is checked as any other caller's. */
const requestHeaders = [
  "authorization",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "prefer",
  "traceparent",
  "tracestate",
  "baggage",
  "x-ambit-token",
];

/** Headers of an answer that a page may read. */
const exposedHeaders = ["x-ambit-run-id", "retry-after", "location"];

/** Seconds for which a browser needs to ask no second time: the most that one remembers. */
const maxAgeSeconds = 7_200;

/**
 * Lets a page of a listed origin read the answer, whatever it will be (CORS). No cookie counts here, so none is allowed.
 *
 * @returns whether a browser only asks if the page may call: then the answer is complete but for its status.
 */
export function answerOrigin(
  { method, headers }: IncomingMessage,
  outgoing: ServerResponse,
  origins: readonly string[],
): boolean {
  if (origins.length === 0) return false;
  outgoing.setHeader("vary", "Origin");
  const { origin } = headers;
  if (origin === undefined || !origins.includes(origin)) return false;
  outgoing.setHeader("access-control-allow-origin", origin);
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) {
    outgoing.setHeader("access-control-expose-headers", exposedHeaders.join(", "));
    return false;
  }
  outgoing.setHeader("access-control-allow-methods", "GET, POST, DELETE");
  outgoing.setHeader("access-control-allow-headers", requestHeaders.join(", "));
  outgoing.setHeader("access-control-max-age", maxAgeSeconds);
  return true;
}

/**
 * Identifies the caller by its token, or by the console's session that it was exchanged for: the operator, a tenant, or a page.
 * Processes of runs are refused where no token tells them apart, or where they may have read it.
 * @throws Unauthorized, HttpRefusal
 */
export async function admitCaller(
  incoming: IncomingMessage,
  path: string,
  context: Pick<ServerContext, "operator" | "tenants" | "runner" | "console" | "pageTokens">,
): Promise<void> {
  const { operator, tenants, runner, console } = context;
  const inUrl = tokenOfUrl(incoming);
  if (inUrl !== undefined) {
    if (incoming.method !== "GET" && incoming.method !== "HEAD") throw new Unauthorized(urlTokenFix);
    return setCaller(incoming, await pageOf(inUrl, context));
  }
  const checkMachine = () => refuseCallersOfRuns(incoming.socket, runner);
  if (await console?.admit(incoming, path, checkMachine)) return;
  const presented = presentedTokens(incoming.headers, runner.registry.dialects);
  if (operator.kind === "token" && presentsToken(presented, operator.token)) return;
  const tenant = tenants.identify(presented);
  if (tenant !== undefined) return setCaller(incoming, { kind: "tenant", tenant });
  // Before callers without a token: a page's token that has expired makes no one the operator.
  const ofPage = presented.find(isPageToken);
  if (ofPage !== undefined) return setCaller(incoming, await pageOf(ofPage, context));
  const isEveryone = operator.kind === "everyone";
  const isLocal = operator.kind === "local" && presentsToken(presented, operator.token);
  if (!isEveryone && !isLocal) throw new Unauthorized(operator.kind === "local" ? localFix : tokenFix);
  await checkMachine();
}

/** @throws Unauthorized for a token that isn't a page's, has expired, or whose maker has no access any more */
async function pageOf(
  token: string,
  { operator, tenants, pageTokens }: Pick<ServerContext, "operator" | "tenants" | "pageTokens">,
): Promise<Caller> {
  const grant = await pageTokens.read(token);
  if (grant.issuer === issuerOf(operator)) return { kind: "page", grant, issuer: { kind: "operator" } };
  const tenant = tenants.list.find((one) => one.token === grant.issuer && one.project === grant.project);
  if (tenant === undefined)
    throw new Unauthorized("Unauthorized: the token that made this page's token isn't valid any more.");
  return { kind: "page", grant, issuer: { kind: "tenant", tenant } };
}

const urlTokenFix =
  "Unauthorized: a token in the URL is only for reading. Send it as `Authorization: Bearer …` instead.";
const tokenFix = "Unauthorized: send a token of this server, as `Authorization: Bearer …`.";
const localFix =
  "Unauthorized: send the token that `ambit token --local` prints, as `Authorization: Bearer …`, or start the server with AMBIT_TOKEN.";

/** The rules for the caller's runs; undefined for the operator. */
function rulesOfCaller(incoming: IncomingMessage): CallerRules | undefined {
  const principal = principalOf(callerOf(incoming));
  return principal.kind === "tenant" ? rulesOf(principal.tenant) : undefined;
}

/** Admits only the operator, to routes that cover all projects. @throws HttpRefusal */
export function requireOperator(incoming: IncomingMessage): void {
  if (callerOf(incoming).kind === "operator") return;
  throw new HttpRefusal(403, "This is the operator's: send AMBIT_TOKEN.", "unauthorized");
}

/** Whether a process of a run has opened the connection. */
const openedByRun = new WeakMap<Socket, Promise<boolean>>();

/**
 * Prevents processes of a run from starting or ending runs: without a boundary they reach this host's listeners.
 * Checked once per connection.
 *
 * @throws HttpRefusal 403
 */
async function refuseCallersOfRuns(socket: Socket, runner: Runner): Promise<void> {
  const { localAddress = "", localPort = 0, remoteAddress = "", remotePort = 0 } = socket;
  const isElsewhere = remoteAddress !== localAddress && !isLoopback(remoteAddress.replace(/^::ffff:/, ""));
  // A connection that has ended has no addresses, and no known owner: its caller is refused like a run's.
  if (isElsewhere && remoteAddress !== "") return;
  const checking =
    openedByRun.get(socket) ?? runner.isCalledByRun({ localAddress, localPort, remoteAddress, remotePort });
  openedByRun.set(socket, checking);
  if (!(await checking)) return;
  const message =
    "A process of a run mustn't call the runner: call it from outside, or set AMBIT_TOKEN for callers that have a right to";
  throw new HttpRefusal(403, `${message}.`, "unauthorized");
}

/** The caller that owns the run, and its trace, for the runner. */
export function callerOptions(incoming: IncomingMessage): Pick<RunOptions, "caller" | "trace"> {
  const caller = rulesOfCaller(incoming);
  return { trace: callersTrace(incoming), caller };
}

/** The headers of W3C Trace Context and W3C Baggage. */
export function callersTrace({ headers }: IncomingMessage): CallersTrace {
  const { traceparent, tracestate, baggage } = headers;
  return {
    // A repeated one is joined here too: it is malformed then.
    ...(traceparent === undefined ? {} : { traceparent: [traceparent].flat().join(",") }),
    ...(tracestate === undefined ? {} : { tracestate: [tracestate].flat().join(",") }),
    ...(baggage === undefined ? {} : { baggage: [baggage].flat().join(",") }),
  };
}
