import { z } from "zod";

/** Names one run, for `POST /runs/{runId}/cancel` and for logs. */
export const runIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/,
    "must be 1 to 128 of A-Z a-z 0-9 _ . : -, beginning with a letter or digit",
  );

/**
 * Names a run among those of all callers: two tenants may use the same id. The operator's runs have their ids as keys.
 *
 * @param tenant the project of the tenant that began it; undefined: the operator.
 */
export function runKey(id: string, tenant: string | undefined): string {
  return tenant === undefined ? id : `${tenant}/${id}`;
}

/** The id that its callers use, which has no `/`. */
export function idOfRun(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
