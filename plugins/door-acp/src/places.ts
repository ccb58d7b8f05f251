import { isAbsolute, posix, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Where the agent sees the editor's folder. */
export const workspace = "/workspace";

/** The path in the editor of what the agent names. A path outside of the workspace stays as it is. Pure. */
export function outsidePath(folder: string, path: string): string {
  const whole = isAbsolute(path) ? path : posix.join(workspace, path);
  if (whole === workspace) return folder;
  return whole.startsWith(`${workspace}/`) ? posix.join(folder, whole.slice(workspace.length + 1)) : whole;
}

/** The path inside of a file of the editor's folder. Undefined: it lies outside of the folder. Pure. */
export function insidePath(folder: string, path: string): string | undefined {
  const below = relative(folder, path);
  if (below === "") return workspace;
  return below === ".." || below.startsWith("../") || isAbsolute(below)
    ? undefined
    : posix.join(workspace, below);
}

/** The path of a `file:` URI; undefined for any other. Pure. */
export function pathOf(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url?.protocol !== "file:") return undefined;
  try {
    return fileURLToPath(new URL(url.pathname, "file://"));
  } catch {
    return undefined;
  }
}

/** A URI of the agent's as the editor can use it. Pure. */
export function outsideUri(folder: string, uri: string): string {
  const path = pathOf(uri);
  return path === undefined ? uri : pathToFileURL(outsidePath(folder, path)).href;
}

/** A URI as the agent can use it. Pure. */
export function insideUri(folder: string, uri: string): string {
  const path = pathOf(uri);
  const inside = path === undefined ? undefined : insidePath(folder, path);
  return inside === undefined ? uri : pathToFileURL(inside).href;
}
