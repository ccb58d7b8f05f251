import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { lstat, open, opendir, open as openFile, readlink, rename, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import { inFolder, type OpenFolder, openBeneath } from "@ambit/backend-kit/safe-fs";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import { beginningOf } from "../../process/start-child.js";
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

/** A file with more names than the workspace shows: writing to it here also writes to it there. */
interface OutsideLink {
  /** How many names it has. */
  readonly links: number;
  /** Names relative to the workspace, one character per byte (latin1), since they may not be valid UTF-8. */
  readonly paths: readonly string[];
}

/** Result of a search through a workspace. */
interface Findings {
  /** Whether there is nothing in it at all. */
  readonly isEmpty: boolean;
  readonly outsideLinks: readonly OutsideLink[];
  /** Paths of the first repositories' `.git`, whatever it is, except the workspace's own. */
  readonly repositories: readonly string[];
}

/** Bytes of `find`'s output: a tree may hold any number of linked files, at any depth. */
const maxOutputBytes = 16 * 1024 * 1024;

/** Opens a folder that its owner closed before entering it: inside, its owner can do the same. */
const opened = ["-type", "d", "!", "-perm", "-0500", "-execdir", "chmod", "u+rx", "--", "{}", ";"];
const repositories = ["-name", ".git", "!", "-path", "./.git", "-printf", "r %P\\0"];
const linked = ["-type", "f", "-links", "+1", "-printf", "l %D:%i %n %P\\0"];

/**
 * Searches a tree once, for repositories and for files that also have names outside it. A jail can't make such a link,
 * but one made elsewhere bypasses every mount. Links among the tree's own files, such as those of package managers,
 * don't count. find(1) descends by descriptor, handles names as bytes, and takes no time of this process.
 *
 * @throws SandboxFailed when the tree can't be searched.
 */
export async function scanHardLinks(root: string): Promise<Findings> {
  if (await isEmpty(root)) return { isEmpty: true, outsideLinks: [], repositories: [] };
  const byInode = new Map<string, { links: number; paths: string[] }>();
  const found: string[] = [];
  for await (const line of recordsOf(root)) {
    const [kind, ...rest] = line.split(" ");
    if (kind === "r") {
      if (found.length < maxRepositories) found.push(Buffer.from(rest.join(" "), "latin1").toString());
      continue;
    }
    const [inode = "", links, ...path] = rest;
    const known = byInode.get(inode) ?? { links: Number(links), paths: [] };
    known.paths.push(path.join(" "));
    byInode.set(inode, known);
  }
  const outsideLinks = [...byInode.values()].filter(({ links, paths }) => links > paths.length);
  return { isEmpty: false, outsideLinks, repositories: found };
}

/** As a session's workspace is when it opens. False for a folder that can't be read: `find` reports that. */
async function isEmpty(folder: string): Promise<boolean> {
  try {
    const entries = await opendir(folder);
    try {
      return (await entries.read()) === null;
    } finally {
      await entries.close();
    }
  } catch {
    return false;
  }
}

/** The records that `find` prints, one character per byte. */
async function* recordsOf(root: string): AsyncGenerator<string> {
  // Other jails of the session may be running, so a file that disappears meanwhile is no failure.
  const expression = ["-ignore_readdir_race", ...opened, ",", ...repositories, ",", ...linked];
  const child = spawn("find", [".", ...expression], {
    cwd: root,
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  ended.catch(() => undefined);
  const complaint = beginningOf(child.stderr);
  let said = 0;
  let text = "";
  try {
    for await (const chunk of child.stdout) {
      said += chunk.length;
      if (said > maxOutputBytes) {
        throw new SandboxFailed("The workspace has too many hard links to be checked: remove some", {
          concerns: "session",
        });
      }
      const records = (text + chunk.toString("latin1")).split("\0");
      text = records.pop() ?? "";
      yield* records;
    }
    const [code] = await ended.catch((error: unknown) => [codeOf(error)]);
    if (code === 0) return;
    throw new SandboxFailed(
      `The workspace can't be searched for hard links (find: ${(await complaint) || code}): apt install findutils`,
    );
  } finally {
    child.kill("SIGKILL");
  }
}

/**
 * Refuses a workspace that holds such files, or replaces each name with a separate copy.
 *
 * @throws SandboxFailed naming the first of them, under `refuse`.
 */
export async function resolveOutsideLinks(
  root: string,
  links: readonly OutsideLink[],
  policy: "refuse" | "copy",
): Promise<void> {
  const found = links.flatMap(({ paths }) => paths);
  if (found.length === 0) return;
  if (policy === "refuse") {
    const shown = found
      .slice(0, 3)
      .map((path) => Buffer.from(path, "latin1").toString())
      .join(", ");
    throw new SandboxFailed(
      `The workspace has files with further names outside it (hard links): ${shown}: copy them instead, or set sandbox-local's hardLinks to "copy"`,
      { concerns: "session" },
    );
  }
  const names = (path: string) => path.split("/").map((name) => Buffer.from(name, "latin1"));
  for (const path of found) await replaceByCopy(root, names(path));
}

async function replaceByCopy(root: string, names: readonly Buffer[]): Promise<void> {
  const name = names.at(-1) ?? Buffer.of();
  const folder = await openBeneath(root, names.slice(0, -1));
  const draft = inFolder(folder, `.ambit-copy-${process.pid}`);
  try {
    const source = await openFile(
      inFolder(folder, name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const { mode, uid, gid } = await source.stat();
      const copy = await openFile(draft, "wx", mode & 0o777);
      try {
        for await (const chunk of source.createReadStream({ autoClose: false })) await copy.writeFile(chunk);
        await copy.chown(uid, gid);
        await copy.chmod(mode & 0o777);
      } finally {
        await copy.close();
      }
      await rename(draft, inFolder(folder, name));
    } finally {
      await source.close();
    }
  } finally {
    await rm(draft, { force: true });
    await folder.handle.close();
  }
}
