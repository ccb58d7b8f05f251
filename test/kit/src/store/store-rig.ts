import { isPlugin, probeSettingsSchema, Registry } from "@ambit/core";
import type { StoreBackend } from "@ambit/core/plugin";
import { openedStore, type Store } from "@ambit/durable/store";

/** A database of its own for one test, and what a test may do to it behind the store's back. */
export interface StoreRig {
  /** The plugin's module, as a URL that can be imported from another process. */
  readonly module: string;
  /** The plugin's configuration: JSON. */
  readonly config: unknown;
  /** Drops every connection that stores have. */
  drop(): Promise<void>;
  /** Says in the database that its schema is of that version. */
  setSchema(version: number): Promise<void>;
  /** Leaves no room for another byte, until the returned function is called. Absent: `fullReason` says why. */
  fill?(): Promise<() => Promise<void>>;
  readonly fullReason?: string;
  close(): Promise<void>;
}

export const silentLog = { debug() {}, info() {}, warn() {}, error() {} };

/** The store that a plugin's module offers for this configuration. */
export async function backendOf({
  module,
  config,
}: Pick<StoreRig, "module" | "config">): Promise<StoreBackend> {
  const { default: plugin }: { default: unknown } = await import(module);
  if (!isPlugin(plugin)) throw new Error(`${module} exports no plugin`);
  const never = () => Promise.reject(new Error("The plugin is given, not imported."));
  const { store } = await Registry.load(
    [{ use: plugin, config }],
    never,
    probeSettingsSchema.parse({}),
    silentLog,
  );
  if (store === undefined) throw new Error(`${module} offers no store`);
  return store;
}

export async function openStore(rig: Pick<StoreRig, "module" | "config">): Promise<Store> {
  const backend = await backendOf(rig);
  return openedStore(backend, await backend.open({ log: silentLog }));
}
