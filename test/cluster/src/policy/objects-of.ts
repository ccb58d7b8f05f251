import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ClusterApi } from "../api.js";

const listSchema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  items: z.array(z.unknown()),
});
const eventSchema = z.object({ type: z.string(), object: z.unknown() });
const identitySchema = z.object({
  metadata: z.object({ uid: z.string().optional(), resourceVersion: z.string() }),
});

/** Milliseconds between two attempts to reach an API server that is away. */
const retryMs = 200;

/** All objects of one kind, kept up to date by a watch that is opened again whenever it ends. */
export class ObjectsOf<T> {
  readonly #api: ClusterApi;
  readonly #path: string;
  readonly #schema: z.ZodType<T>;
  readonly #changed: () => void;
  #objects = new Map<string, T>();

  constructor(api: ClusterApi, path: string, schema: z.ZodType<T>, changed: () => void) {
    this.#api = api;
    this.#path = path;
    this.#schema = schema;
    this.#changed = changed;
  }

  get all(): readonly T[] {
    return [...this.#objects.values()];
  }

  async follow(): Promise<never> {
    for (;;) {
      try {
        await this.#listAndWatch();
      } catch (error) {
        console.error(error);
        await sleep(retryMs);
      }
    }
  }

  async #listAndWatch(): Promise<void> {
    const list = listSchema.parse(await this.#api.request("GET", this.#path));
    this.#objects = new Map(list.items.map((item) => [this.#idOf(item), this.#schema.parse(item)]));
    this.#changed();
    for await (const event of this.#api.watch(this.#path, list.metadata.resourceVersion)) {
      const { type, object } = eventSchema.parse(event);
      // The server no longer has this version: list again.
      if (type === "ERROR") return;
      if (type === "BOOKMARK") continue;
      if (type === "DELETED") this.#objects.delete(this.#idOf(object));
      else this.#objects.set(this.#idOf(object), this.#schema.parse(object));
      this.#changed();
    }
  }

  #idOf(object: unknown): string {
    return identitySchema.parse(object).metadata.uid ?? "";
  }
}
