import type { IncomingMessage } from "node:http";
import type { Runner, RunOptions, Slot } from "@ambit/runner";
import type { QuotaPlace } from "../../tenants/quotas.js";
import { rulesOfCaller } from "./admit-caller.js";

/** A slot of the runner in addition to the project's. @throws AtCapacity after releasing the project's slot */
export function reserve(runner: Runner, place: QuotaPlace): Slot {
  try {
    return runner.reserve();
  } catch (error) {
    place.release();
    throw error;
  }
}

/** The caller that owns the run, for the runner. */
export function callerOption(incoming: IncomingMessage): Pick<RunOptions, "caller"> {
  const caller = rulesOfCaller(incoming);
  return caller === undefined ? {} : { caller };
}
