import { definePlugin, type StoreBackend, stateFolder } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { z } from "zod";

const configSchema = z.strictObject({
  /**
   * The database's file, created if it doesn't exist. Default: `AMBIT_SQLITE_FILE`, else `runs.sqlite` in the runner's
   * data folder.
   */
  file: z.string().min(1).optional(),
  /**
   * `process`: committed data survives the end of the process; a power failure may lose the last seconds · `power`: it
   * survives that too, and each group of events waits for the disk.
   */
  durability: z.enum(["process", "power"]).default("process"),
});
export type SqliteStoreConfig = z.output<typeof configSchema>;

/** A store in one file. The database is opened by `open`, and everything with it is imported then. */
export function sqliteStore(config: SqliteStoreConfig): StoreBackend<Store> {
  return {
    name: "sqlite",
    open: async ({ log }) => {
      const { openSqlite } = await import("./open-sqlite.js");
      return openSqlite(config.file ?? defaultFile(), config.durability, log);
    },
  };
}

function defaultFile(): string {
  const { AMBIT_SQLITE_FILE: file } = process.env;
  if (file !== undefined && file !== "") return file;
  return stateFolder("runs.sqlite");
}

export default definePlugin({
  name: "store-sqlite",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("store", sqliteStore(config)),
});
