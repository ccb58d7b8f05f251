import type { Blobs } from "./blobs.js";
import { type FileSealing, sizeInside } from "./sealing.js";

/** The same place, with every file encrypted before it gets there. */
export function sealedBlobs(blobs: Blobs, sealing: FileSealing): Blobs {
  return {
    put: (owner, name, content) => blobs.put(owner, name, sealing.seal(content, { owner, name })),
    get: async (owner, name) => {
      const found = await blobs.get(owner, name);
      return found && { size: sizeInside(found.size), content: sealing.open(found.content, { owner, name }) };
    },
    files: (owner) => blobs.files(owner),
    deleteFile: (owner, name) => blobs.deleteFile(owner, name),
    owners: (before) => blobs.owners(before),
    delete: (owner) => blobs.delete(owner),
    close: () => blobs.close(),
  };
}
