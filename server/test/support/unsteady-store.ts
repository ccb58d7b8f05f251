import { definePlugin, type StoreBackend } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { sqliteStore } from "@ambit/store-sqlite";
import { z } from "zod";
import { databaseFile } from "./stored-server.js";

/**
 * A SQLite file whose statements fail, or are never answered, as long as the test says so.
 * @param opening it opens when this resolves.
 */
export async function unsteadyStore(opening: Promise<void> = Promise.resolve()) {
  const state: { how: "works" | "fails" | "hangs" } = { how: "works" };
  const file = await databaseFile();
  const sqlite = sqliteStore({ file, durability: "process" });
  const backend: StoreBackend<Store> = {
    name: "unsteady",
    open: async (scope) => {
      await opening;
      return new Proxy(await sqlite.open(scope), {
        get: (store, name) => {
          const method: unknown = Reflect.get(store, name);
          if (typeof method !== "function" || name === "close" || name === "leave") return method;
          return async (...given: unknown[]) => {
            if (state.how === "fails") throw new Error("database or disk is full");
            if (state.how === "hangs") await new Promise(() => {});
            return Reflect.apply(method, store, given);
          };
        },
      });
    },
  };
  const plugin = definePlugin({
    name: "unsteady",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) => registrar.add("store", backend),
  });
  return { state, plugin };
}
