import { type AmbitError, RunCancelled } from "@ambit/core";

/** What the caller ended itself is no failure to it: `ok`, with the stop reason `cancelled`. Pure. */
export function cancelledByCaller(failure: AmbitError | undefined): boolean {
  return failure instanceof RunCancelled && failure.by === "caller";
}
