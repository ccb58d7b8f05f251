import { isPlugin, probeSettingsSchema, Registry } from "@ambit/core";
import type { StoreBackend } from "@ambit/core/plugin";
import { openedStore, type Store } from "@ambit/durable/store";

/** A separate database for one test, and ways to manipulate it without the store. */
export interface StoreRig {
  /** The plugin's module, as a URL that can be imported from another process. */
  readonly module: string;
  /** The plugin's configuration: JSON. */
  readonly config: unknown;
  /** Drops every connection of the stores. */
  drop(): Promise<void>;
  /** Sets the version of the schema in the database. */
  setSchema(version: number): Promise<void>;
  /** Fills the disk until the returned function is called. Absent: `fullReason` names why that is impossible. */
  fill?(): Promise<() => Promise<void>>;
  readonly fullReason?: string;
  close(): Promise<void>;
}

export const silentLog = { debug() {}, info() {}, warn() {}, error() {} };

/** The store that a plugin's module registers with this configuration. */
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
