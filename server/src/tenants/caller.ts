import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { PageGrant } from "./page-grant.js";
import type { Tenant } from "./schema.js";

/** Who is answerable for a request: its rules and quotas hold. */
export type Principal = { readonly kind: "operator" } | { readonly kind: "tenant"; readonly tenant: Tenant };

/**
 * The sender of a request: the operator, or a tenant, by its token; or a page in a user's browser, by a token that one of them
 * made for one session or one file.
 */
export type Caller =
  | Principal
  | { readonly kind: "page"; readonly grant: PageGrant; readonly issuer: Principal };

const operator: Principal = { kind: "operator" };
const callers = new WeakMap<IncomingMessage, Caller>();

/** Remembers the sender that the checks of a request have found. */
export function setCaller(incoming: IncomingMessage, caller: Caller): void {
  callers.set(incoming, caller);
}

/** The sender. The operator if no other token was presented, since the earlier checks let the request pass. */
export function callerOf(incoming: IncomingMessage): Caller {
  return callers.get(incoming) ?? operator;
}

const persons = new WeakMap<IncomingMessage, string>();

/** Remembers the name of the person who is signed in to the console. It is for records only, and grants nothing. */
export function setPerson(incoming: IncomingMessage, name: string): void {
  persons.set(incoming, name);
}

export function personOf(incoming: IncomingMessage): string | undefined {
  return persons.get(incoming);
}

/** Whose rules and quotas hold for a caller: for a page, those of the one that made its token. */
export function principalOf(caller: Caller): Principal {
  return caller.kind === "page" ? caller.issuer : caller;
}

/** Names a caller, the same in each of its requests: for a page, also with a new token of the same session and rights. */
export function callerIdOf(caller: Caller): string {
  return createHash("sha256")
    .update(JSON.stringify(identityOf(caller)))
    .digest("base64url");
}

function identityOf(caller: Caller): readonly unknown[] {
  switch (caller.kind) {
    case "operator":
      return [caller.kind];
    case "tenant":
      return [caller.kind, caller.tenant.token];
    case "page": {
      const { issuer, project = null, scope } = caller.grant;
      const subject =
        scope.kind === "session" ? [scope.sessionId, scope.may.toSorted()] : [scope.runKey, scope.path];
      return [caller.kind, issuer, project, scope.kind, ...subject];
    }
  }
}

/** The tenant's project; undefined for the operator. */
export function tenantOf(principal: Principal): string | undefined {
  return principal.kind === "tenant" ? principal.tenant.project : undefined;
}

/**
 * Whose share of connections and memory a caller uses: a project's, or the operator's under undefined. Pages of the operator
 * have a share like a tenant's, so that their number never keeps the operator out.
 */
export function shareOf(caller: Caller): string | undefined {
  return caller.kind === "page" ? (caller.grant.project ?? "") : tenantOf(caller);
}
