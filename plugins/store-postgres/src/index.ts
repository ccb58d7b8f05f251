import { definePlugin, type StoreBackend, secret } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { z } from "zod";

const configSchema = z.strictObject({
  /**
   * A connection string. Default: `AMBIT_POSTGRES_URL`, else libpq's own variables (`PGHOST`, `PGUSER`…). Put a
   * password into the environment.
   */
  url: secret(z.string().min(1)).optional(),
  /** The schema for Ambit's tables; created if it doesn't exist. */
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,40}$/, "must be lower-case letters, digits and _")
    .default("ambit"),
  /**
   * What is between Ambit and PostgreSQL: `none`, also for a pooler of sessions that passes startup parameters on ·
   * `transaction`: a pooler that may give each transaction another connection, such as PgBouncer with
   * `pool_mode = transaction`.
   */
  pooling: z.enum(["none", "transaction"]).default("none"),
  /** Most connections of each replica. */
  connections: z.int().positive().max(1_000).default(10),
});
export type PostgresStoreConfig = z.output<typeof configSchema>;

/** A store that many replicas share. Nothing is connected or imported before `open`. */
export function postgresStore(config: PostgresStoreConfig): StoreBackend<Store> {
  return {
    name: "postgres",
    open: async ({ log }) => {
      const { openPostgres } = await import("./open-postgres.js");
      return openPostgres(config, log);
    },
  };
}

/** Read once, and taken away: what runs later in this process can't find the password there. */
function takeUrl(): string | undefined {
  const { AMBIT_POSTGRES_URL: url } = process.env;
  delete process.env.AMBIT_POSTGRES_URL;
  return url;
}

export default definePlugin({
  name: "store-postgres",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    const url = takeUrl();
    registrar.secret(url);
    registrar.secret(process.env.PGPASSWORD, "password");
    registrar.add("store", postgresStore({ ...config, url: config.url ?? url }));
  },
});
