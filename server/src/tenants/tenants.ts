import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Dialect } from "@ambit/core";
import { matchesBearer } from "@ambit/core/plugin";
import type { CallerRules } from "@ambit/runner";
import type { Tenant } from "./schema.js";

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
