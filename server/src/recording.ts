import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { idOfRun, inOffer, messageOf, ofOffer } from "@ambit/core";
import { OtherKey, RecordedRuns, type RecordedRunsOptions, Sealing } from "@ambit/durable";
import { openedStore, type Store, type StoredRun } from "@ambit/durable/store";
import { notifyLost, notifyPosted } from "@ambit/runner";
import { z } from "zod";
import { ConfigurationInvalid } from "./configuration/problems.js";
import { earlierKey } from "./key-files.js";
import type { Ambit } from "./open.js";

/** Bytes of a key that nobody else needs. */
const keyBytes = 32;

/** The runs of a server or command, and what protects their requests. */
export interface Recording {
  readonly runs: RecordedRuns;
  readonly sealing: Sealing;
  /** Whether runs outlive this process. */
  readonly isStored: boolean;
  /** Whether it begins what other replicas have queued, if there are any. */
  readonly takesOthers: boolean;
}

/**
 * Opens the store that a plugin offers; undefined where there is none.
 * @throws ConfigurationInvalid when it can't be opened: runs would be lost that callers believe to be stored
 */
export async function openStore({ registry, settings, log }: Ambit): Promise<Store | undefined> {
  const backend = registry.store;
  if (backend === undefined) return undefined;
  try {
    const opened = await inOffer(backend, () => backend.open({ log }));
    return ofOffer(backend, openedStore(backend, opened));
  } catch (cause) {
    const reason = `the store '${backend.name}' can't be opened: ${messageOf(cause)}`;
    const fix = settings.pluginsAreDefault
      ? `mend it, move its file away, or run without a store: { "extends": "defaults", "without": ["@ambit/store-sqlite"] } in ambit.config.json`
      : "mend it, or its settings";
    throw new ConfigurationInvalid("plugins", [`${reason}: ${fix}`], { cause });
  }
}

/** Runs in an open store. @param address where callers reach this replica. Undefined: this process is its only caller. */
export async function recordInStore(
  ambit: Ambit,
  store: Store,
  address: string | undefined,
): Promise<Recording> {
  const { runner, webhooks } = ambit;
  const runs = await openRuns(ambit, store, address).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  webhooks.hasStore = true;
  runner.keepAnswersIn(runs.answers);
  const takesOthers = address !== undefined;
  // Only where another process could continue a session.
  if (takesOthers) runner.keepSessionsIn(runs.sessions);
  return { runs, sealing: runs.options.sealing, isStored: true, takesOthers };
}

/** @throws ConfigurationInvalid where replicas couldn't read what others have encrypted */
async function openRuns(ambit: Ambit, store: Store, address: string | undefined): Promise<RecordedRuns> {
  const { mayLoseContent, store: settings } = ambit.settings;
  const sealing = new Sealing(await ambit.interactionKey(), await otherKeys(ambit));
  const options = { ...optionsOf(ambit, sealing, address), store, settings, mayLoseContent };
  return RecordedRuns.open(options).catch((error: unknown) => {
    if (!(error instanceof OtherKey)) throw error;
    throw new ConfigurationInvalid("interactions.keyFile", [error.message], { cause: error });
  });
}

/** @throws ConfigurationInvalid for one that can't be used */
function otherKeys({ settings }: Pick<Ambit, "settings">): Promise<readonly KeyObject[]> {
  return Promise.all(
    settings.otherKeyFiles.map((file, index) => earlierKey(`interactions.otherKeyFiles[${index}]`, file)),
  );
}

/** What seals the tokens of pages: with the same keys as a store's content, also where no store is loaded. */
export function pageSealing(ambit: Pick<Ambit, "settings" | "interactionKey">): () => Promise<Sealing> {
  let sealing: Promise<Sealing> | undefined;
  return () => {
    sealing ??= (async () =>
      new Sealing(await ambit.interactionKey(), await otherKeys(ambit), "page token"))();
    return sealing;
  };
}

/** Runs in the memory of this process, where no store is loaded. */
export async function recordInMemory(ambit: Ambit, address: string | undefined): Promise<Recording> {
  const sealing = new Sealing(createSecretKey(randomBytes(keyBytes)));
  // Imported where it is needed: a server with a store of another kind needs none of it.
  const { openMemoryStore } = await import("@ambit/sql-store/memory");
  const runs = await RecordedRuns.openInMemory({
    ...optionsOf(ambit, sealing, address),
    store: openMemoryStore(),
    settings: ambit.settings.memory,
  });
  ambit.runner.keepAnswersIn(runs.answers);
  return { runs, sealing, isStored: false, takesOthers: true };
}

/** What the observers of a lost run had stored, by their names. None for what another key sealed. */
function recoveriesOf(
  { id, sealedRecovery }: Pick<StoredRun, "id" | "sealedRecovery">,
  sealing: Sealing,
): Readonly<Record<string, string>> {
  if (sealedRecovery === undefined) return {};
  try {
    return recoveriesSchema.parse(sealing.unseal(id, sealedRecovery));
  } catch {
    return {};
  }
}

const recoveriesSchema = z.record(z.string(), z.string());

function optionsOf(
  { runner, registry, settings, log, webhooks }: Ambit,
  sealing: Sealing,
  address: string | undefined,
): Omit<RecordedRunsOptions, "settings"> {
  return {
    sealing,
    log,
    place: address,
    address: address === undefined ? "" : (settings.server.address ?? address),
    sender: webhooks,
    openSessions: () => runner.sessions,
    onLost: (run) => {
      const { id, harness, sandbox, createdAt, startedAt = createdAt } = run;
      const lost = { runId: idOfRun(id), harness, sandbox, begunAt: startedAt };
      notifyLost(registry.observers, lost, recoveriesOf(run, sealing), log);
    },
    onLapse: () => {
      runner.abandonSessions().catch((error: unknown) => log.error({ error }, "a session didn't close"));
    },
    onPosted: (attempt) => notifyPosted(registry.observers, attempt, log),
  };
}
