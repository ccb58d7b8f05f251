import { type GitService, isJsonObject } from "@ambit/core/plugin";
import type { BoundCredential } from "./bound.js";
import { pathOf, type RequestLine } from "./limits.js";

/** What a request of git or git LFS needs. `body`: only its body tells a download from an upload. */
interface GitRequest {
  readonly services: readonly GitService[];
  readonly body?: true;
}

/** Contents, as Gitea, Azure, GitLab and others serve them below the repository's own path. */
const lfsObject = /\/(?:info\/lfs|gitlab-lfs)\/objects\/[0-9a-f]{64}(?:\/\d{1,19})?$/;
/** A content that a host serves elsewhere: GitHub Enterprise, and Bitbucket. */
const lfsObjectElsewhere =
  /^\/(?:storage\/lfs\/\d{1,19}\/objects|rest\/git-lfs\/storage\/.+)\/[0-9a-f]{64}(?:\/verify)?$/;
const lfsLocks = /\/info\/lfs\/locks(?:\/verify|\/[A-Za-z0-9-]{1,64}\/unlock)?$/;

/** Whether git LFS sends this request as an action that a server told it, with the header that the server told it. Pure. */
export function isLfsAction(request: RequestLine): boolean {
  const path = pathOf(request.url);
  return lfsObject.test(path) || lfsObjectElsewhere.test(path) || /\/info\/lfs\/verify$/.test(path);
}

/**
 * The git service that a request asks for, by method, path and query exactly as git sends them; undefined for any other
 * request. Pure.
 */
export function gitRequestOf({ method, url }: RequestLine): GitRequest | undefined {
  const path = pathOf(url);
  const query = url.includes("?") ? url.slice(url.indexOf("?") + 1) : undefined;
  if (method === "GET" && path.endsWith("/info/refs")) {
    if (query === "service=git-upload-pack") return { services: ["fetch"] };
    return query === "service=git-receive-pack" ? { services: ["push"] } : undefined;
  }
  if (lfsLocks.test(path) && (method === "GET" || method === "POST"))
    return { services: method === "GET" ? ["lfs"] : ["push", "lfs"] };
  if (query !== undefined) return undefined;
  if (method === "GET" && lfsObject.test(path)) return { services: ["lfs"] };
  if (method === "PUT" && lfsObject.test(path)) return { services: ["push", "lfs"] };
  if (method !== "POST") return undefined;
  if (path.endsWith("/git-upload-pack")) return { services: ["fetch"] };
  if (path.endsWith("/git-receive-pack")) return { services: ["push"] };
  if (path.endsWith("/info/lfs/objects/batch")) return { services: ["lfs"], body: true };
  return /\/info\/lfs\/(?:objects\/)?verify$/.test(path) ? { services: ["push", "lfs"] } : undefined;
}

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

/**
 * Git's settings for one process, without changing a repository (git-config, "ENVIRONMENT"): the placeholder
 * is sent with every request to its hosts, and remotes over SSH are reached by HTTPS instead.
 *
 * @param given variables that the process has already: settings in them stay.
 */
export function gitVariables(
  credentials: readonly BoundCredential[],
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const settings = gitSettings(credentials);
  const before = given.GIT_CONFIG_COUNT ?? "0";
  // An invalid count: git itself reports it.
  if (settings.length === 0 || !/^\d{1,4}$/.test(before)) return {};
  const first = Number(before);
  return Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(first + settings.length)],
    ...settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${first + index}`, key],
      [`GIT_CONFIG_VALUE_${first + index}`, value],
    ]),
  ]);
}

type Setting = readonly [key: string, value: string];

/** One credential per URL, passwords first, since git would send two headers with the same name. */
function gitSettings(credentials: readonly BoundCredential[]): readonly Setting[] {
  const byRank = credentials.toSorted((one, other) => rankOf(one) - rankOf(other));
  const headers = new Map<string, string>();
  const remotes = new Map<string, string>();
  for (const credential of byRank) {
    const header = headerOf(credential);
    if (header === undefined) continue;
    for (const endpoint of credential.endpoints) {
      const name = endpoint.replace(/:443$/, "");
      const origin = `https://${name}/`;
      for (const path of credential.paths ?? ["/"]) {
        // Git takes `/app.git` and `/app.git/` for the same place, and would send the header for each of them.
        const place =
          origin +
          path
            .slice(1)
            .replace(/[^/]*\*$/, "")
            .replace(/\/$/, "");
        if (!headers.has(place)) headers.set(place, header);
      }
      if (!name.includes(":")) {
        for (const remote of [`git@${name}:`, `ssh://git@${name}/`]) remotes.set(remote, origin);
      }
    }
  }
  // A path within another comes first: git then uses only its header.
  const places = [...headers].toSorted(([one], [other]) => other.length - one.length);
  return [
    ...places.map(([place, header]): Setting => [`http.${place}.extraHeader`, header]),
    ...[...remotes].map(([remote, origin]): Setting => [`url.${origin}.insteadOf`, remote]),
  ];
}

const rankOf = ({ as }: BoundCredential) => (as === "basic" ? 0 : as === "bearer" ? 1 : 2);

/** The header that git sends for it; undefined for a model's key. */
function headerOf({ as, placeholder }: BoundCredential): string | undefined {
  if (as === undefined) return undefined;
  if (typeof as === "object") return `${as.header}: ${placeholder}`;
  if (as === "bearer") return `Authorization: Bearer ${placeholder}`;
  return `Authorization: Basic ${Buffer.from(`x-access-token:${placeholder}`).toString("base64")}`;
}
