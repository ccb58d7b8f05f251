/** The parts of a request that a credential's limits check. */
export interface RequestLine {
  readonly method: string;
  /** Origin form, with its query. */
  readonly url: string;
}

const safeMethods: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/**
 * Whether servers could interpret the path differently: encoded separators, dots and parameters, empty or dot segments.
 * A path that is compared must have none of these. Pure.
 */
export function isAmbiguousPath(path: string): boolean {
  return /%(?:2[ef35]|3[bf]|5c|00|0[ad])|[\\;]|\/\/|\/\.{1,2}(?:\/|$)/i.test(path);
}

export function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}

/** Whether a pattern of `paths` matches the path. Pure. */
export function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

/**
 * Whether a request only reads: `body` if only its body can tell (git LFS).
 * Git's smart protocol reads by POST too (gitprotocol-http); everything else that isn't safe by its method writes. Pure.
 */
export function readingOf({ method, url }: RequestLine): "reads" | "writes" | "body" {
  const path = pathOf(url);
  if (/git[-_]?receive[-_]?pack/i.test(decoded(url))) return "writes";
  if (safeMethods.includes(method)) return "reads";
  if (method !== "POST") return "writes";
  if (path.endsWith("/git-upload-pack")) return "reads";
  return path.endsWith("/info/lfs/objects/batch") ? "body" : "writes";
}

/** Whether a git LFS batch asks for downloads only (its `operation`, git-lfs docs/api/batch.md). Pure. */
export function isLfsDownload(body: string): boolean {
  try {
    const content: unknown = JSON.parse(body);
    return (
      typeof content === "object" &&
      content !== null &&
      "operation" in content &&
      content.operation === "download"
    );
  } catch {
    return false;
  }
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
