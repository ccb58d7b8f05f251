import type { IncomingMessage } from "node:http";
import type { Tenant } from "./schema.js";

/** The sender of a request: the operator, or a tenant, by its token. */
export type Caller = { readonly kind: "operator" } | { readonly kind: "tenant"; readonly tenant: Tenant };

const operator: Caller = { kind: "operator" };
const tenants = new WeakMap<IncomingMessage, Caller>();

/** Remembers the tenant whose token a request presented. */
export function setTenant(incoming: IncomingMessage, tenant: Tenant): void {
  tenants.set(incoming, { kind: "tenant", tenant });
}

/** The sender. The operator if no tenant's token was presented, since the earlier checks let the request pass. */
export function callerOf(incoming: IncomingMessage): Caller {
  return tenants.get(incoming) ?? operator;
}

/** The tenant's project; undefined for the operator. */
export function tenantOf(caller: Caller): string | undefined {
  return caller.kind === "tenant" ? caller.tenant.project : undefined;
}
