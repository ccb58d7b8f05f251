import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { temporaryFolder } from "../../machine/temporary-folder.js";

/** A store on a database of its own. */
export interface MeasuredStore extends AsyncDisposable {
  readonly name: string;
  /** Its entry in a configuration. */
  readonly plugin: { readonly use: string; readonly config: object };
}

/** Every store that can be opened here, one at a time. */
export async function* measuredStores(): AsyncGenerator<MeasuredStore> {
  const folder = await temporaryFolder();
  yield {
    name: "sqlite",
    plugin: { use: moduleOf("@ambit/store-sqlite"), config: { file: join(folder.path, "runs.sqlite") } },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
  if (postgresIsMissing() !== undefined) return;
  const server = await startPostgres();
  yield {
    name: "postgres",
    plugin: { use: moduleOf("@ambit/store-postgres"), config: { url: server.url } },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** Absolute, since a configuration in a temporary folder finds no package by name. */
const moduleOf = (name: string) => fileURLToPath(import.meta.resolve(name));
