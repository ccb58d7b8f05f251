import { type AmbitError, cancelledByCaller } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";

/**
 * Logs why a run ended early. Stack and causes are logged only for what an operator may have to fix: a caller that
 * disconnected, a kill or a busy session isn't a fault.
 */
export function logFailure(log: Log, runId: string, error: AmbitError): void {
  const fields = { runId, code: error.code };
  if (cancelledByCaller(error)) log.info({ ...fields, reason: error.message }, "the run was cancelled");
  else if (error.status < 500) log.info({ ...fields, reason: error.message }, "the run was ended");
  else log.warn({ ...fields, error }, "the run failed");
}
