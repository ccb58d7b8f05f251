import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
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
import type { WorkspaceMount } from "../launch/arguments.js";
import { inside } from "../launch/inside.js";
import {
  findProtectedPaths,
  maxRepositories,
  resolveOutsideLinks,
  scanHardLinks,
} from "./protected-paths.js";

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
export async function prepareMounts(
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
    const found = await handle.stat();
    if (found.isSymbolicLink()) throw Object.assign(new Error("a link"), { code: "ELOOP" });
    return found.isDirectory() ? "folder" : "file";
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
      const found = await scanHardLinks(folder);
      await resolveOutsideLinks(folder, found.outsideLinks, config.hardLinks);
      this.#repositories = [...new Set([...this.#repositories, ...found.repositories])].slice(
        0,
        maxRepositories,
      );
      this.#areLinksSettled = true;
      isEmpty = found.isEmpty;
    }
    const kept = isEmpty ? [] : await findProtectedPaths(folder, config.protectedPaths, this.#repositories);
    return prepareMounts(folder, pathRules(filesystem, kept), isWritable(filesystem), owner);
  }
}

/** Whether processes may write to the workspace where no rule says otherwise. Pure. */
export function isWritable({ mode, writable }: FilesystemBoundary): boolean {
  return mode !== "readonly" && writable.length === 0;
}
