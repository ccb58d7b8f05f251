import { isJsonObject } from "@ambit/core/plugin";

/**
 * A git LFS batch that asks for downloads (git-lfs docs/api/batch.md), written again from what was read: servers differ
 * in which of two `operation`, or of `operation` and `Operation`, they take. Undefined for anything else. Pure.
 */
export function lfsDownload(body: string): string | undefined {
  const content = parsed(body);
  if (!isJsonObject(content) || content.operation !== "download") return undefined;
  const { transfers, ref, objects, hash_algo: algorithm } = content;
  if (!Array.isArray(objects) || !objects.every(isObject)) return undefined;
  const isNamed = isJsonObject(ref) && typeof ref.name === "string";
  return JSON.stringify({
    operation: "download",
    ...(Array.isArray(transfers) ? { transfers: transfers.filter((each) => typeof each === "string") } : {}),
    ...(isNamed ? { ref: { name: ref.name } } : {}),
    objects: objects.map(({ oid, size }) => ({ oid, size })),
    ...(typeof algorithm === "string" ? { hash_algo: algorithm } : {}),
  });
}

interface LfsObject {
  readonly oid: string;
  readonly size: number;
}

function isObject(value: unknown): value is LfsObject {
  return isJsonObject(value) && typeof value.oid === "string" && typeof value.size === "number";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
