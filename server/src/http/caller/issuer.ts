import { createHash } from "node:crypto";
import type { Principal } from "../../tenants/caller.js";
import type { OperatorAccess } from "./operator-access.js";

/**
 * Names the token whose owner makes a page's token: with it, its pages lose their access too. Null for an operator without a
 * configured token. Undefined: there is no operator.
 */
export function issuerOf(operator: OperatorAccess): string | null | undefined {
  switch (operator.kind) {
    case "token":
      return `sha256:${createHash("sha256").update(operator.token).digest("hex")}`;
    case "local":
    case "everyone":
      return null;
    case "tenants":
      return undefined;
  }
}

/** Names the token of the one whose rules hold for a request. */
export function issuerIn(principal: Principal, operator: OperatorAccess): string | null {
  return principal.kind === "tenant" ? principal.tenant.token : (issuerOf(operator) ?? null);
}
