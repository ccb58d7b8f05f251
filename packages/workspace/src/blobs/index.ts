import type { BlobsBackend } from "@ambit/core/plugin";
import type { Blobs } from "./blobs.js";

export { type Blob, type BlobFile, type BlobOwner, type Blobs, requireBlobName } from "./blobs.js";
export { sealedBlobs } from "./sealed-blobs.js";
export { FileSealing } from "./sealing.js";

const methods = ["put", "get", "files", "deleteFile", "owners", "delete", "close"] as const;

/** What a plugin opened, checked. @throws Error for something that isn't one */
export function openedBlobs({ name }: Pick<BlobsBackend, "name">, opened: unknown): Blobs {
  if (isBlobs(opened)) return opened;
  throw new Error(`the plugin's '${name}' must be an object with ${methods.join(", ")}`);
}

function isBlobs(opened: unknown): opened is Blobs {
  if (typeof opened !== "object" || opened === null) return false;
  return methods.every((method) => typeof Reflect.get(opened, method) === "function");
}
