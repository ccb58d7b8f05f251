import type { AmbitError } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import { cancelledByCaller } from "./cancelled-by-caller.js";

/**
 * Says why a run ended early. Only what an operator may have to mend comes with its stack and causes: a caller that
 * left, a kill or a busy session is no fault.
 */
export function logFailure(log: Log, runId: string, error: AmbitError): void {
  const fields = { runId, code: error.code };
  if (cancelledByCaller(error)) log.info({ ...fields, reason: error.message }, "the run was cancelled");
  else if (error.status < 500) log.info({ ...fields, reason: error.message }, "the run was refused");
  else log.warn({ ...fields, error }, "the run failed");
}
