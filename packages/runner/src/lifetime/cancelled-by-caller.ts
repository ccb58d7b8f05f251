import { type AmbitError, RunCancelled } from "@ambit/core";

/** A run that its caller ended isn't a failure to that caller: `ok`, with the stop reason `cancelled`. Pure. */
export function cancelledByCaller(failure: AmbitError | undefined): boolean {
  return failure instanceof RunCancelled && failure.by === "caller";
}
