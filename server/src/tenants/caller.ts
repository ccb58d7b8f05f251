import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Dialect } from "@ambit/core";
import { matchesBearer } from "@ambit/core/plugin";
import type { StoredRun } from "@ambit/durable/store";
import type { CallerRules } from "@ambit/runner";
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

/** The rows that a caller may see: of every project, or of one. Undefined: those of no project. */
export type Projects = "all" | string | undefined;

/** The operator sees all projects, a tenant its own, a page that of its token. */
export function callersProjects(incoming: IncomingMessage): Projects {
  const caller = callerOf(incoming);
  if (caller.kind === "page") return caller.grant.project;
  return caller.kind === "operator" ? "all" : caller.tenant.project;
}

/** Whether a caller may see this run: a page sees those of its session, or the one whose file it may read. */
export function isVisibleTo(caller: Caller, row: Pick<StoredRun, "id" | "project" | "session">): boolean {
  if (caller.kind === "operator") return true;
  if (caller.kind === "tenant") return row.project === caller.tenant.project;
  const { project, scope } = caller.grant;
  const isInScope = scope.kind === "file" ? row.id === scope.runKey : row.session === scope.sessionId;
  return isInScope && row.project === project;
}

/** The callers that have their own token. */
export class Tenants {
  readonly #tenants: readonly { readonly hash: Buffer; readonly tenant: Tenant }[];

  constructor(readonly list: readonly Tenant[]) {
    this.#tenants = list.map((tenant) => ({
      hash: Buffer.from(tenant.token.replace(/^sha256:/, ""), "hex"),
      tenant,
    }));
  }

  get isEmpty(): boolean {
    return this.#tenants.length === 0;
  }

  /** The tenant with one of these tokens. Compares with every tenant's, in constant time. */
  identify(presented: readonly string[]): Tenant | undefined {
    const digests = presented.map((token) => createHash("sha256").update(token).digest());
    const matching = this.#tenants.filter(
      ({ hash }) => digests.filter((digest) => timingSafeEqual(digest, hash)).length > 0,
    );
    return matching[0]?.tenant;
  }

  /** The projects of all tenants. */
  get projects(): readonly string[] {
    return [...new Set(this.#tenants.map(({ tenant }) => tenant.project))];
  }
}

/** The rules for this tenant's runs. Pure. */
export function rulesOf({ project, permissions, require, sandboxes, harnesses }: Tenant): CallerRules {
  return {
    project,
    minimum: require,
    permissionCeiling: permissions.deny,
    sandboxes,
    harnesses,
  };
}

/** A new token, and its hash for the configuration. */
export function newToken(): { readonly token: string; readonly hash: string } {
  const token = `ambit_${randomBytes(32).toString("base64url")}`;
  return { token, hash: `sha256:${createHash("sha256").update(token).digest("hex")}` };
}

/** The headers in which a caller may present its token for the API. */
export function tokenHeadersOf(dialects: readonly Dialect[]): readonly string[] {
  return ["authorization", "x-ambit-token", ...dialects.flatMap(({ tokenHeaders = [] }) => tokenHeaders)];
}

/** The tokens that a request presents, in a header with the scheme `Bearer` or in one that holds nothing else. */
export function presentedTokens(
  headers: IncomingHttpHeaders,
  dialects: readonly Dialect[],
): readonly string[] {
  const ofScheme = /^bearer +([^ ].*)$/i.exec(headers.authorization ?? "")?.[1];
  const bare = tokenHeadersOf(dialects)
    .filter((name) => name !== "authorization")
    .map((name) => headers[name]);
  return [ofScheme, ...bare].filter((value) => typeof value === "string");
}

/** Whether one of the presented tokens is this one. Each is compared in constant time. */
export function presentsToken(presented: readonly string[], token: string): boolean {
  return presented.filter((one) => matchesBearer(`Bearer ${one}`, token)).length > 0;
}
