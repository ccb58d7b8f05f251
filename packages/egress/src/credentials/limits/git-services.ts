import type { GitService } from "@ambit/core/plugin";
import { pathOf } from "./paths.js";
import type { RequestLine } from "./reading.js";

/** What a request of git or git LFS needs. `body`: only its body tells a download from an upload. */
export interface GitRequest {
  readonly services: readonly GitService[];
  readonly body?: true;
}

/** Contents, as Gitea, GitLab and others serve them at the repository's own host. */
const lfsObject = /\/info\/lfs\/objects\/[0-9a-f]{64}(?:\/\d{1,19})?$/;
const lfsLocks = /\/info\/lfs\/locks(?:\/verify|\/[A-Za-z0-9-]{1,64}\/unlock)?$/;

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
