import type { Capability } from "@ambit/core/plugin";

/**
 * What this machine is known to be able to prove, from `AMBIT_MUST_PROVE`: capabilities separated by commas, each for
 * every backend that claims it, or as `backend:capability` for one. For these, a skip is a failure.
 */
export function mustProve(
  backend: { readonly name: string; readonly claims: readonly Capability[] },
  capability: Capability,
  listed = process.env.AMBIT_MUST_PROVE ?? "",
): boolean {
  const entries = listed.split(",").map((entry) => entry.trim());
  if (entries.includes(`${backend.name}:${capability}`)) return true;
  return entries.includes(capability) && backend.claims.includes(capability);
}
