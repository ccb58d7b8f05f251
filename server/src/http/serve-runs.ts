import type { Store } from "@ambit/durable/store";
import type { Ambit } from "../open.js";
import { openStore, type Recording, recordInMemory, recordInStore } from "../recording.js";
import { SharedQuotas } from "../tenants/shared-quotas.js";
import { Beginnings } from "./runs/beginnings.js";
import { RunQueue } from "./runs/run-queue.js";
import type { ServedRuns } from "./server-context.js";

/**
 * The runs of the server: in the store, if one is loaded, else in memory.
 * @param named the store that the configuration names, which is open. @param address where callers reach this replica.
 */
export async function serveRuns(
  ambit: Ambit,
  named: Store | undefined,
  address: string,
): Promise<ServedRuns> {
  const { settings } = ambit;
  const store = named ?? (settings.pluginsAreDefault ? await openStore(ambit) : undefined);
  const recording =
    store === undefined ? await recordInMemory(ambit, address) : await recordInStore(ambit, store, address);
  return served(ambit, recording);
}

/** The runs of a process that no other reaches. */
export async function serveInMemory(ambit: Ambit): Promise<ServedRuns> {
  return served(ambit, await recordInMemory(ambit, ""));
}

function served({ runner, tenants, log }: Ambit, recording: Recording): ServedRuns {
  const { runs, sealing } = recording;
  const quotas = new SharedQuotas(runs, tenants.list);
  const { queuedRuns, maxMiB } = runs.options.settings;
  const limits = { queuedRuns, queuedBytes: maxMiB * 1_048_576 };
  const queue = new RunQueue({ runs, runner, sealing, tenants, quotas, log, limits });
  return { ...recording, quotas, queue, beginnings: new Beginnings() };
}
