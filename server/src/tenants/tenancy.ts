import type { Tenant } from "./schema.js";
import { Tenants } from "./tenants.js";

/** The callers of a server that have their own token. */
export class Tenancy {
  readonly tenants: Tenants;

  constructor(readonly given: readonly Tenant[]) {
    this.tenants = new Tenants(given);
  }
}
