import type { IncomingMessage } from "node:http";
import type { Tenant } from "../../tenants/schema.js";

/** Who sends a request: the operator, or a tenant, by its token. */
export type Caller = { readonly kind: "operator" } | { readonly kind: "tenant"; readonly tenant: Tenant };

const operator: Caller = { kind: "operator" };
const tenants = new WeakMap<IncomingMessage, Caller>();

/** Remembers whose token a request presented. */
export function setTenant(incoming: IncomingMessage, tenant: Tenant): void {
  tenants.set(incoming, { kind: "tenant", tenant });
}

/** Who sends it. The operator, where no tenant's token was presented: the checks before the routes let it pass. */
export function callerOf(incoming: IncomingMessage): Caller {
  return tenants.get(incoming) ?? operator;
}
