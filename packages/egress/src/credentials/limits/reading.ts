import { pathOf } from "./paths.js";

/** The parts of a request that a credential's limits check. */
export interface RequestLine {
  readonly method: string;
  /** Origin form, with its query. */
  readonly url: string;
}

const safeMethods: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** Whether the request reads whatever its path is. Pure. */
export const isSafe = ({ method }: RequestLine): boolean => safeMethods.includes(method);

/**
 * Whether a request only reads: `body` if only its body can tell (git LFS).
 * Git's smart protocol reads by POST too (gitprotocol-http); everything else that isn't safe by its method writes. Pure.
 */
export function readingOf(request: RequestLine): "reads" | "writes" | "body" {
  const { method, url } = request;
  const path = pathOf(url);
  if (/git[-_]?receive[-_]?pack/i.test(decoded(url))) return "writes";
  if (isSafe(request)) return "reads";
  if (method !== "POST") return "writes";
  if (path.endsWith("/git-upload-pack")) return "reads";
  return path.endsWith("/info/lfs/objects/batch") ? "body" : "writes";
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
