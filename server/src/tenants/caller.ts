import type { IncomingMessage } from "node:http";
import type { Tenant } from "./schema.js";

/** The sender of a request: the operator, or a tenant, by its token. */
export type Caller = { readonly kind: "operator" } | { readonly kind: "tenant"; readonly tenant: Tenant };

const operator: Caller = { kind: "operator" };
const callers = new WeakMap<IncomingMessage, Caller>();

/** Remembers the sender that the checks of a request have found. */
export function setCaller(incoming: IncomingMessage, caller: Caller): void {
  callers.set(incoming, caller);
}

/** The sender. The operator if no tenant's token was presented, since the earlier checks let the request pass. */
export function callerOf(incoming: IncomingMessage): Caller {
  return callers.get(incoming) ?? operator;
}

/** The tenant's project; undefined for the operator. */
export function tenantOf(caller: Caller): string | undefined {
  return caller.kind === "tenant" ? caller.tenant.project : undefined;
}
