import type { IncomingMessage } from "node:http";
import { Unauthorized } from "@ambit/core";
import type { CallerRules } from "@ambit/runner";
import { rulesOf } from "../../tenants/tenants.js";
import { HttpRefusal } from "../response/refusal.js";
import type { ServerContext } from "../server-context.js";
import { callerOf, setTenant } from "./caller.js";
import { refuseCallersOfRuns } from "./run-caller.js";
import { presentsToken } from "./token.js";

/**
 * Identifies the caller by its token: the operator or a tenant. On a server without any token, every caller is the
 * operator, except for processes of runs.
 * @throws Unauthorized, HttpRefusal
 */
export async function admitCaller(
  incoming: IncomingMessage,
  { token, tenancy, runner }: Pick<ServerContext, "token" | "tenancy" | "runner">,
): Promise<void> {
  const { headers } = incoming;
  if (token !== undefined && presentsToken(headers, token)) return;
  const tenant = tenancy.tenants.identify(headers);
  if (tenant !== undefined) setTenant(incoming, tenant);
  else if (token !== undefined || !tenancy.tenants.isEmpty) throw new Unauthorized();
  // With tokens, callers are already identified.
  else await refuseCallersOfRuns(incoming.socket, runner);
}

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
