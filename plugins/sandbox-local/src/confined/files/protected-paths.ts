import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { type OpenFolder, openBeneath } from "@ambit/backend-kit/safe-fs";
import { codeOf } from "@ambit/core/plugin";
import { inside } from "../launch/inside.js";

/** Only this many repositories are searched, those found first. */
export const maxRepositories = 64;

const maxLinks = 8;
/** Bytes of a file that points to a repository elsewhere: a path and a keyword. */
const maxPointerBytes = 8_192;

/**
 * Finds the protected settings in the workspace: existing paths without links in them. Paths below `.git` apply to
 * every repository. A `.git` that is a file (of a worktree or submodule) or a link, and any other link on the way, is
 * followed as long as it stays in the workspace; a target elsewhere doesn't exist inside.
 *
 * @param kept relative to the workspace.
 * @param repositories paths of every `.git` below the workspace's own folder.
 */
export async function findProtectedPaths(
  workspace: string,
  kept: readonly string[],
  repositories: readonly string[],
): Promise<readonly string[]> {
  const wanted = kept.flatMap((path) => {
    const normal = posix.normalize(path);
    if (normal !== ".git" && !normal.startsWith(".git/")) return [normal];
    return [normal, ...repositories.map((repository) => posix.join(posix.dirname(repository), normal))];
  });
  const found = await Promise.all(wanted.map((path) => resolve(workspace, path.split("/"))));
  return [...new Set(found.flat())].sort();
}

/** The paths that a name leads to, with the files that led there; empty if it leads outside or doesn't exist. */
async function resolve(workspace: string, names: readonly string[], links = 0): Promise<readonly string[]> {
  const passed: string[] = [];
  for (const [index, name] of names.entries()) {
    if (name === "..") return [];
    const path = [...passed, name].join("/");
    const rest = names.slice(index + 1);
    const kind = await kindOf(workspace, [...passed, name]);
    if (kind === "link") {
      if (links === maxLinks) return [];
      const target = namesBelowWorkspace(passed, await readlink(join(workspace, path)).catch(() => ".."));
      return target === undefined ? [] : resolve(workspace, [...target, ...rest], links + 1);
    }
    if (kind === "file" && name === ".git" && rest.length > 0 && links < maxLinks) {
      const target = namesBelowWorkspace(
        passed,
        await pointerIn(join(workspace, path), /^gitdir: (.+?)\n?$/),
      );
      const found = target === undefined ? [] : await resolveIn(workspace, target, rest, links + 1);
      return [path, ...found];
    }
    if (kind === "other" || (kind === "file" && rest.length > 0)) return [];
    passed.push(name);
  }
  return passed.length === 0 ? [] : [passed.join("/")];
}

/** In a repository's own folder, and in the folder that it shares with other worktrees. */
async function resolveIn(
  workspace: string,
  folder: readonly string[],
  rest: readonly string[],
  links: number,
): Promise<readonly string[]> {
  const shared = namesBelowWorkspace(
    folder,
    await pointerIn(join(workspace, ...folder, "commondir"), /^(.+?)\n?$/),
  );
  const folders = shared === undefined ? [folder] : [folder, shared];
  const found = await Promise.all(folders.map((one) => resolve(workspace, [...one, ...rest], links)));
  return found.flat();
}

/** The names below the workspace that a path means to a program inside; undefined if it leads elsewhere. Pure. */
function namesBelowWorkspace(folder: readonly string[], target: string): readonly string[] | undefined {
  const start = posix.join(inside.workspace, ...folder);
  const path = posix.resolve(start, target);
  return path.startsWith(`${inside.workspace}/`)
    ? path.slice(inside.workspace.length + 1).split("/")
    : undefined;
}

async function kindOf(
  workspace: string,
  names: readonly string[],
): Promise<"folder" | "file" | "link" | "other"> {
  const path = join(workspace, ...names);
  let found = await lstat(path).catch(codeOf);
  if (found === "EACCES") {
    // Its owner closed a folder on the way: open it again, as the next jail's processes could do themselves.
    const close = ({ handle }: OpenFolder) => handle.close();
    await openBeneath(workspace, names.slice(0, -1)).then(close, () => undefined);
    found = await lstat(path).catch(codeOf);
  }
  if (typeof found !== "object") return "other";
  if (found.isSymbolicLink()) return "link";
  if (found.isDirectory()) return "folder";
  return found.isFile() ? "file" : "other";
}

/** What the pattern matches in a short file; a path outside the workspace if it doesn't match. */
async function pointerIn(path: string, pattern: RegExp): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  try {
    if (file === undefined || !(await file.stat()).isFile()) return "/";
    const { bytesRead, buffer } = await file.read(Buffer.alloc(maxPointerBytes));
    return pattern.exec(buffer.toString("utf8", 0, bytesRead))?.[1] ?? "/";
  } catch {
    // Not one of git's files, whatever it is.
    return "/";
  } finally {
    await file?.close();
  }
}
