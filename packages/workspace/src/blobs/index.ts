import { offerTitle, PluginBrokeContract } from "@ambit/core";
import type { BlobsBackend } from "@ambit/core/plugin";
import type { Blobs } from "./blobs.js";

export { type Blob, type BlobFile, type BlobOwner, type Blobs, requireBlobName } from "./blobs.js";
export { FileSealing, sealedBlobs } from "./sealing.js";

const methods = ["put", "get", "files", "deleteFile", "owners", "delete", "close"] as const;

/** What a plugin opened, checked. @throws PluginBrokeContract for something that isn't one */
export function openedBlobs(backend: Pick<BlobsBackend, "name">, opened: unknown): Blobs {
  if (isBlobs(opened)) return opened;
  const needed = `an object with ${methods.join(", ")}`;
  throw new PluginBrokeContract(
    `${offerTitle(backend)} returned what it must not from open(): it must be ${needed}.`,
  );
}

function isBlobs(opened: unknown): opened is Blobs {
  if (typeof opened !== "object" || opened === null) return false;
  return methods.every((method) => typeof Reflect.get(opened, method) === "function");
}
