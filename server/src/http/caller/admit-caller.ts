import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Unauthorized } from "@ambit/core";
import type { CallerRules, Runner } from "@ambit/runner";
import { callerOf, setCaller } from "../../tenants/caller.js";
import { presentedTokens, presentsToken } from "../../tenants/presented-token.js";
import { rulesOf } from "../../tenants/tenants.js";
import { HttpRefusal } from "../response/refusal.js";
import type { ServerContext } from "../server-context.js";
import { isLoopback } from "./loopback.js";

/**
 * Identifies the caller by its token, or by the console's session that it was exchanged for: the operator or a tenant. Processes
 * of runs are refused where no token tells them apart, or where they may have read it.
 * @throws Unauthorized, HttpRefusal
 */
export async function admitCaller(
  incoming: IncomingMessage,
  path: string,
  { operator, tenants, runner, console }: Pick<ServerContext, "operator" | "tenants" | "runner" | "console">,
): Promise<void> {
  const checkMachine = () => refuseCallersOfRuns(incoming.socket, runner);
  if (await console?.admit(incoming, path, checkMachine)) return;
  const presented = presentedTokens(incoming.headers, runner.registry.dialects);
  if (operator.kind === "token" && presentsToken(presented, operator.token)) return;
  const tenant = tenants.identify(presented);
  if (tenant !== undefined) return setCaller(incoming, { kind: "tenant", tenant });
  const isEveryone = operator.kind === "everyone";
  const isLocal = operator.kind === "local" && presentsToken(presented, operator.token);
  if (!isEveryone && !isLocal) throw new Unauthorized(operator.kind === "local" ? localFix : tokenFix);
  await checkMachine();
}

const tokenFix = "Unauthorized: send a token of this server, as `Authorization: Bearer …`.";
const localFix =
  "Unauthorized: send the token that `ambit token --local` prints, as `Authorization: Bearer …`, or start the server with AMBIT_TOKEN.";

/** The rules for the caller's runs; undefined for the operator. */
export function rulesOfCaller(incoming: IncomingMessage): CallerRules | undefined {
  const caller = callerOf(incoming);
  return caller.kind === "tenant" ? rulesOf(caller.tenant) : undefined;
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
