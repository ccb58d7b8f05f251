import { isJsonObject } from "@ambit/core";
import type { Runner } from "@ambit/runner";
import type { Caller } from "../http/caller/caller.js";
import { type QuotaPlace, Quotas } from "./quotas.js";
import type { Tenant } from "./schema.js";
import { Tenants } from "./tenants.js";

/** The callers of a server that have their own token, and their usage of quotas. */
export class Tenancy {
  readonly tenants: Tenants;
  readonly #quotas = new Quotas();

  constructor(readonly given: readonly Tenant[]) {
    this.tenants = new Tenants(given);
  }

  /**
   * Takes a slot for a run of this caller.
   * @param body of its request, as it came.
   * @throws AtCapacity
   */
  take(caller: Caller, body: unknown, runner: Pick<Runner, "sessions">): QuotaPlace {
    if (caller.kind === "operator") return { release: () => {} };
    const { project } = caller.tenant;
    const open = runner.sessions.filter((session) => session.project === project);
    const named = isJsonObject(body) ? body.sessionId : undefined;
    const opensSession = typeof named === "string" && open.every(({ session }) => session !== named);
    return this.#quotas.take(caller.tenant, opensSession, open.length);
  }
}
