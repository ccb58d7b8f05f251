import { buffer } from "node:stream/consumers";
import type { Blobs } from "../src/blobs.js";

/** Blobs in memory. */
export function memoryBlobs(): Blobs & { readonly kept: Map<string, Map<string, Buffer>> } {
  const kept = new Map<string, Map<string, Buffer>>();
  return {
    kept,
    put: async (owner, name, content) => {
      const bytes = await buffer(content);
      kept.set(owner, (kept.get(owner) ?? new Map<string, Buffer>()).set(name, bytes));
    },
    get: async (owner, name) => {
      const found = kept.get(owner)?.get(name);
      return found === undefined ? undefined : { size: found.length, content: only(found) };
    },
    files: async function* (owner) {
      for (const name of kept.get(owner)?.keys() ?? []) yield { name, at: 0 };
    },
    deleteFile: async (owner, name) => void kept.get(owner)?.delete(name),
    owners: async function* (before) {
      for (const owner of kept.keys()) if (before > 0) yield { owner, since: 0 };
    },
    delete: async (owner) => void kept.delete(owner),
    close: async () => {},
  };
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer, void, undefined> {
  yield bytes;
}
