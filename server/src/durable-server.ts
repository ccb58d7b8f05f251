import { idOfRun, messageOf } from "@ambit/core";
import { DurableRuns, Sealing } from "@ambit/durable";
import { openedStore, type Store } from "@ambit/durable/store";
import { notifyLost, notifyPosted } from "@ambit/runner";
import { ConfigurationInvalid } from "./configuration/problems.js";
import { RunQueue } from "./http/runs/run-queue.js";
import type { DurableServer } from "./http/server-context.js";
import type { Ambit } from "./open.js";
import { SharedQuotas } from "./tenants/shared-quotas.js";

/**
 * Opens the store that a plugin offers; undefined where there is none.
 * @throws ConfigurationInvalid when it can't be opened: runs would be lost that callers believe to be stored
 */
export async function openStore({ registry, settings, log }: Ambit): Promise<Store | undefined> {
  const backend = registry.store;
  if (backend === undefined) return undefined;
  try {
    return openedStore(backend, await backend.open({ log }));
  } catch (cause) {
    const reason = `the store '${backend.name}' can't be opened: ${messageOf(cause)}`;
    const fix = settings.pluginsAreDefault
      ? `mend it, move its file away, or run without a store: { "extends": "defaults", "without": ["@ambit/store-sqlite"] } in ambit.config.json`
      : "mend it, or its settings";
    throw new ConfigurationInvalid("plugins", [`${reason}: ${fix}`], { cause });
  }
}

/** What the server sets up with an open store. @param address where callers reach this replica. */
export async function durableServer(
  { runner, registry, settings, log, tenancy, webhooks, interactionKey }: Ambit,
  store: Store,
  address: string,
): Promise<DurableServer & { close(): Promise<void> }> {
  const sealing = new Sealing(await interactionKey());
  const durable = await openRuns(store, () =>
    DurableRuns.open({
      ...{ store, sealing, log, settings: settings.store, address: settings.server.address ?? address },
      place: address,
      openSessions: () => runner.sessions,
      sender: webhooks,
      onLost: ({ id, harness, sandbox }) =>
        notifyLost(registry.observers, { runId: idOfRun(id), harness, sandbox }, log),
      onLapse: () => {
        runner.abandonSessions().catch((error: unknown) => log.error({ error }, "a session didn't close"));
      },
      onPosted: (attempt) => notifyPosted(registry.observers, attempt, log),
    }),
  );
  webhooks.hasStore = true;
  runner.keepAnswersIn(durable.answers);
  runner.keepSessionsIn(durable.sessions);
  const quotas = new SharedQuotas(durable.store, tenancy.given);
  const queue = new RunQueue({
    ...{ durable, runner, sealing, tenancy, quotas, log },
    maxQueued: settings.store.queuedRuns,
  });
  return {
    ...{ durable, sealing, queue, quotas },
    close: async () => {
      await queue.close();
      await durable.close();
    },
  };
}

async function openRuns<Result>(store: Store, open: () => Promise<Result>): Promise<Result> {
  try {
    return await open();
  } catch (error) {
    await store.close();
    throw error;
  }
}
