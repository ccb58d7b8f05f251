import type { FileOwner } from "@ambit/backend-kit/safe-fs";
import type { Command, FilesystemBoundary } from "@ambit/core/plugin";
import type { LocalConfig } from "../../config.js";
import type { WorkspaceMount } from "../launch/arguments.js";
import { inside } from "../launch/inside.js";
import { resolveOutsideLinks, scanHardLinks } from "./hard-links.js";
import { findProtectedPaths, maxRepositories } from "./protected-paths.js";
import { openSessionFolder } from "./session-folder.js";
import { pathRules, prepareMounts } from "./workspace-mounts.js";

export interface RulesOptions {
  /** The workspace's folder on the host. */
  readonly folder: string;
  readonly filesystem: FilesystemBoundary;
  readonly config: Pick<LocalConfig, "protectedPaths" | "hardLinks">;
  /** The owner of folders that rules create, if that isn't the runner's own user. */
  readonly owner: FileOwner | undefined;
}

/** The mounts of one jail in the workspace. */
export interface HeldMounts {
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
