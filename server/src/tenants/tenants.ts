import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
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
