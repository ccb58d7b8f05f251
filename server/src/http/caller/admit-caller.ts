import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Unauthorized } from "@ambit/core";
import type { CallerRules, Runner } from "@ambit/runner";
import { type Caller, callerOf, principalOf, setCaller } from "../../tenants/caller.js";
import { isPageToken } from "../../tenants/page-grant.js";
import { presentedTokens, presentsToken, rulesOf } from "../../tenants/tenants.js";
import { HttpRefusal } from "../response/refusal.js";
import type { ServerContext } from "../server-context.js";
import { issuerOf } from "./issuer.js";
import { isLoopback } from "./loopback.js";
import { tokenOfUrl } from "./url-token.js";

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
export function rulesOfCaller(incoming: IncomingMessage): CallerRules | undefined {
  const principal = principalOf(callerOf(incoming));
  return principal.kind === "tenant" ? rulesOf(principal.tenant) : undefined;
}

/** For routes that cover all projects. @throws HttpRefusal */
export function requireOperator(incoming: IncomingMessage): void {
  if (callerOf(incoming).kind === "operator") return;
  throw new HttpRefusal(403, "This is the operator's: send AMBIT_TOKEN.", "unauthorized");
}

const known = new WeakMap<Socket, Promise<boolean>>();

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
  const asked =
    known.get(socket) ?? runner.isCalledByRun({ localAddress, localPort, remoteAddress, remotePort });
  known.set(socket, asked);
  if (!(await asked)) return;
  const message =
    "A process of a run mustn't call the runner: call it from outside, or set AMBIT_TOKEN for callers that have a right to";
  throw new HttpRefusal(403, `${message}.`, "unauthorized");
}
