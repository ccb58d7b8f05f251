/** The access to single paths of the workspace: those of the boundary, and settings that programs of the host trust. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import {
  type FileHandle,
  lstat,
  open,
  opendir,
  open as openFile,
  readlink,
  rename,
  rm,
} from "node:fs/promises";
import { join, posix } from "node:path";
import {
  type FileOwner,
  inFolder,
  type OpenFolder,
  openBeneath,
  type PathMapping,
  refusal,
} from "@ambit/backend-kit/safe-fs";
import { type Command, codeOf, type FilesystemBoundary, SandboxFailed } from "@ambit/core/plugin";
import type { LocalConfig } from "../../config.js";
import { beginningOf } from "../../process/host-processes.js";
import { inside, type WorkspaceMount } from "../arguments.js";

/** Opens a session's workspace or home. Its owner may have closed it, and no jail could enter it then: opens it again. */
export async function openSessionFolder(mapping: PathMapping): Promise<FileHandle> {
  const { handle } = await openBeneath(mapping, []);
  try {
    const { mode } = await handle.stat();
    if ((mode & 0o700) !== 0o700) await handle.chmod((mode & 0o7777) | 0o700);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** One rule of a workspace: the access to one path in it. */
interface PathRule {
  /** Relative to the workspace, without `.` and `..`. */
  readonly path: string;
  readonly access: "write" | "read" | "none";
  /** Whether the path is created if it doesn't exist: a rule of the request must apply from the start. */
  readonly make: boolean;
  /** A rule of the deployer applies where it can; one of the request applies or refuses the run. */
  readonly kept?: true;
}

/**
 * The rules of a writable workspace, broad ones first, so that a narrower one wins over them. Nothing lies below a
 * denied path. Pure.
 *
 * @param kept paths that are read-only if they exist, because another program of the host trusts their content.
 */
export function pathRules(filesystem: FilesystemBoundary, kept: readonly string[]): readonly PathRule[] {
  const rules: PathRule[] = [
    ...filesystem.writable.map((path): PathRule => ({ path, access: "write", make: true })),
    ...filesystem.readable.map((path): PathRule => ({ path, access: "read", make: false })),
    ...kept.map((path): PathRule => ({ path, access: "read", make: false, kept: true })),
    ...filesystem.denied.map((path): PathRule => ({ path, access: "none", make: true })),
  ].map((rule) => ({
    ...rule,
    path: rule.path
      .split("/")
      .filter((name) => name !== "" && name !== ".")
      .join("/"),
  }));
  const depth = ({ path }: PathRule) => path.split("/").length;
  const hidden = rules.filter(({ access }) => access === "none");
  const isHidden = (rule: PathRule) =>
    hidden.some(
      (other) => isBelow(rule.path, other.path) || (rule.path === other.path && rule.access !== "none"),
    );
  return rules
    .filter((rule) => rule.path !== "" && !isHidden(rule))
    .sort((one, other) => depth(one) - depth(other));
}

/**
 * What to mount in the workspace for the rules. Every path is opened without following links. Each folder on the way to
 * it is mounted onto itself, so that it can't be renamed away together with the rule.
 *
 * Only while no jail of the session lives: the mounts are made by name, and a jail without them could exchange a path.
 */
async function prepareMounts(
  workspace: string,
  rules: readonly PathRule[],
  writable: boolean,
  owner: FileOwner | undefined,
): Promise<readonly WorkspaceMount[]> {
  const mounts: WorkspaceMount[] = [];
  const pinned = new Set<string>();
  for (const rule of rules) {
    const names = rule.path.split("/");
    const make = rule.make ? { owner } : undefined;
    const target = await kindOfTarget(workspace, names, make).catch((error: unknown) => {
      // A setting that can't be reached can't be protected.
      if (rule.kept) return undefined;
      throw refusedRule(rule, error);
    });
    if (target === undefined) continue;
    for (let length = 1; length < names.length; length++) {
      const path = names.slice(0, length).join("/");
      if (pinned.has(path) || accessAt(rules, path, writable) !== "write") continue;
      pinned.add(path);
      mounts.push({ kind: "write", path });
    }
    if (rule.access !== "none") pinned.add(rule.path);
    const hiding = target === "folder" ? "hide-folder" : "hide-file";
    mounts.push({ kind: rule.access === "none" ? hiding : rule.access, path: rule.path });
  }
  return mounts;
}

/** The rule for a path: that of its nearest parent with one, or else that of the workspace. */
function accessAt(rules: readonly PathRule[], path: string, writable: boolean): PathRule["access"] {
  const covering = rules.filter((rule) => path === rule.path || isBelow(path, rule.path));
  return covering.at(-1)?.access ?? (writable ? "write" : "read");
}

function refusedRule({ path, access }: PathRule, cause: unknown): SandboxFailed {
  const list = { write: "writable", read: "readable", none: "denied" }[access];
  const code = cause instanceof Error ? codeOf(cause.cause) : undefined;
  const why =
    code === "ELOOP" || code === "ENOTDIR"
      ? "there is a link or a file in the path"
      : (code ?? "it can't be opened");
  return new SandboxFailed(
    `The boundary's ${list} path ${JSON.stringify(path)} can't be reached in the workspace without following links: ${why}`,
    { cause, concerns: "session" },
  );
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}

/**
 * O_PATH, which Node has no name for: it opens only the location, whatever its type. A session may have removed all
 * permissions, and opening a pipe would block. For a link it opens the link itself.
 */
export const asPlace = 0o10000000 | constants.O_NOFOLLOW;

async function kindOfTarget(
  workspace: string,
  names: readonly string[],
  make: { readonly owner: FileOwner | undefined } | undefined,
): Promise<"folder" | "file" | undefined> {
  const name = names.at(-1) ?? "";
  let parent: OpenFolder;
  try {
    parent = await openBeneath(workspace, names.slice(0, -1), make);
  } catch (error) {
    if (make === undefined && error instanceof Error && codeOf(error.cause) === "ENOENT") return undefined;
    throw error;
  }
  try {
    return await kindIn(parent, name);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw refusal(`${parent.shown}/${name}`, error);
    if (make === undefined) return undefined;
    const { handle } = await openBeneath(workspace, names, make);
    await handle.close();
    return "folder";
  } finally {
    await parent.handle.close();
  }
}

async function kindIn(parent: OpenFolder, name: string): Promise<"folder" | "file"> {
  const handle = await open(inFolder(parent, name), asPlace);
  try {
    const stats = await handle.stat();
    if (stats.isSymbolicLink()) throw Object.assign(new Error("a link"), { code: "ELOOP" });
    return stats.isDirectory() ? "folder" : "file";
  } finally {
    await handle.close();
  }
}

export interface RulesOptions {
  /** The workspace's folder on the host. */
  readonly folder: string;
  readonly filesystem: FilesystemBoundary;
  readonly config: Pick<LocalConfig, "protectedPaths" | "hardLinks">;
  /** The owner of folders that rules create, if that isn't the runner's own user. */
  readonly owner: FileOwner | undefined;
}

/** The mounts of one jail in the workspace. */
interface HeldMounts {
  readonly mounts: readonly WorkspaceMount[];
  /** To be called once nothing of the jail lives. */
  release(): void;
}

/**
 * What a session's jails mount in its workspace. It is determined while no jail of the session lives, and stays the same
 * as long as one does: each of them then pins every path that another one mounts on, so that no process can exchange it.
 * A protected or readable path that is created meanwhile is mounted when a jail starts after all others have ended.
 */
export class WorkspaceRules {
  readonly #options: RulesOptions;
  #areLinksSettled = false;
  /** By the path of their `.git`: the first ones found, for the life of the session. */
  #repositories: readonly string[] = [];
  #current: { readonly mounts: Promise<readonly WorkspaceMount[]>; holders: number } | undefined;

  constructor(options: RulesOptions) {
    this.#options = options;
  }

  /** @throws SandboxFailed when a rule can't be applied, or a file has a link outside. */
  async hold(role: Command["role"]): Promise<HeldMounts> {
    const current = this.#current ?? { mounts: this.#look(role), holders: 0 };
    this.#current = current;
    current.holders += 1;
    let isHeld = true;
    const release = () => {
      if (isHeld) current.holders -= 1;
      isHeld = false;
      if (current.holders === 0 && this.#current === current) this.#current = undefined;
    };
    try {
      return { mounts: await current.mounts, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #look(role: Command["role"]): Promise<readonly WorkspaceMount[]> {
    const { folder, filesystem, config, owner } = this.#options;
    await (await openSessionFolder({ guest: inside.workspace, host: folder })).close();
    let isEmpty = false;
    if (role === "agent" || !this.#areLinksSettled) {
      const findings = await scanHardLinks(folder);
      await resolveOutsideLinks(folder, findings.outsideLinks, config.hardLinks);
      this.#repositories = [...new Set([...this.#repositories, ...findings.repositories])].slice(
        0,
        maxRepositories,
      );
      this.#areLinksSettled = true;
      isEmpty = findings.isEmpty;
    }
    const kept = isEmpty ? [] : await findProtectedPaths(folder, config.protectedPaths, this.#repositories);
    return prepareMounts(folder, pathRules(filesystem, kept), isWritable(filesystem), owner);
  }
}

/** Whether processes may write to the workspace where no rule says otherwise. Pure. */
export function isWritable({ mode, writable }: FilesystemBoundary): boolean {
  return mode !== "readonly" && writable.length === 0;
}

/** Only this many repositories are searched, those found first. */
const maxRepositories = 64;

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
  const existing = await Promise.all(wanted.map((path) => resolve(workspace, path.split("/"))));
  return [...new Set(existing.flat())].sort();
}

/** The paths that a name leads to, with the files that led there; empty if it leads outside or doesn't exist. */
async function resolve(workspace: string, names: readonly string[], links = 0): Promise<readonly string[]> {
  const passed: string[] = [];
  for (const [index, name] of names.entries()) {
    if (name === "..") return [];
    const path = [...passed, name].join("/");
    const further = names.slice(index + 1);
    const kind = await kindOf(workspace, [...passed, name]);
    if (kind === "link") {
      if (links === maxLinks) return [];
      const target = namesBelowWorkspace(passed, await readlink(join(workspace, path)).catch(() => ".."));
      return target === undefined ? [] : resolve(workspace, [...target, ...further], links + 1);
    }
    if (kind === "file" && name === ".git" && further.length > 0 && links < maxLinks) {
      const target = namesBelowWorkspace(
        passed,
        await pointerIn(join(workspace, path), /^gitdir: (.+?)\n?$/),
      );
      const below = target === undefined ? [] : await resolveIn(workspace, target, further, links + 1);
      return [path, ...below];
    }
    if (kind === "other" || (kind === "file" && further.length > 0)) return [];
    passed.push(name);
  }
  return passed.length === 0 ? [] : [passed.join("/")];
}

/** In a repository's own folder, and in the folder that it shares with other worktrees. */
async function resolveIn(
  workspace: string,
  folder: readonly string[],
  further: readonly string[],
  links: number,
): Promise<readonly string[]> {
  const shared = namesBelowWorkspace(
    folder,
    await pointerIn(join(workspace, ...folder, "commondir"), /^(.+?)\n?$/),
  );
  const folders = shared === undefined ? [folder] : [folder, shared];
  const paths = await Promise.all(folders.map((start) => resolve(workspace, [...start, ...further], links)));
  return paths.flat();
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
  let stats = await lstat(path).catch(codeOf);
  if (stats === "EACCES") {
    // Its owner closed a folder on the way: open it again, as the next jail's processes could do themselves.
    const close = ({ handle }: OpenFolder) => handle.close();
    await openBeneath(workspace, names.slice(0, -1)).then(close, () => undefined);
    stats = await lstat(path).catch(codeOf);
  }
  if (typeof stats !== "object") return "other";
  if (stats.isSymbolicLink()) return "link";
  if (stats.isDirectory()) return "folder";
  return stats.isFile() ? "file" : "other";
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
  const repositories: string[] = [];
  for await (const line of recordsOf(root)) {
    const [kind, ...fields] = line.split(" ");
    if (kind === "r") {
      if (repositories.length < maxRepositories)
        repositories.push(Buffer.from(fields.join(" "), "latin1").toString());
      continue;
    }
    const [inode = "", links, ...path] = fields;
    const link = byInode.get(inode) ?? { links: Number(links), paths: [] };
    link.paths.push(path.join(" "));
    byInode.set(inode, link);
  }
  const outsideLinks = [...byInode.values()].filter(({ links, paths }) => links > paths.length);
  return { isEmpty: false, outsideLinks, repositories };
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
  let outputBytes = 0;
  let text = "";
  try {
    for await (const chunk of child.stdout) {
      outputBytes += chunk.length;
      if (outputBytes > maxOutputBytes) {
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
async function resolveOutsideLinks(
  root: string,
  links: readonly OutsideLink[],
  policy: "refuse" | "copy",
): Promise<void> {
  const linkedPaths = links.flatMap(({ paths }) => paths);
  if (linkedPaths.length === 0) return;
  if (policy === "refuse") {
    const shown = linkedPaths
      .slice(0, 3)
      .map((path) => Buffer.from(path, "latin1").toString())
      .join(", ");
    throw new SandboxFailed(
      `The workspace has files with further names outside it (hard links): ${shown}: copy them instead, or set sandbox-local's hardLinks to "copy"`,
      { concerns: "session" },
    );
  }
  const names = (path: string) => path.split("/").map((name) => Buffer.from(name, "latin1"));
  for (const path of linkedPaths) await replaceByCopy(root, names(path));
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
