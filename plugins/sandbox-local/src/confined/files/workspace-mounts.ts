import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { inFolder, type OpenFolder, type Ownership, openBeneath, refusal } from "@ambit/backend-kit/safe-fs";
import { codeOf, type FilesystemBoundary, SandboxFailed } from "@ambit/core/plugin";
import type { WorkspaceMount } from "../launch/arguments.js";

/** One rule of a workspace: the access to one path in it. */
export interface PathRule {
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

/** Mounts and their open descriptors, which are numbered from `first` in the jail, and closed after the spawn. */
export interface PreparedMounts {
  readonly mounts: readonly WorkspaceMount[];
  readonly handles: readonly OpenFolder["handle"][];
}

/**
 * Opens every path that has a rule, without following links. Each folder on the way to it is mounted onto itself, so
 * that it can't be renamed away together with the rule.
 */
export async function prepareMounts(
  workspace: string,
  rules: readonly PathRule[],
  writable: boolean,
  first: number,
  owner: Ownership | undefined,
): Promise<PreparedMounts> {
  const mounts: WorkspaceMount[] = [];
  const handles: OpenFolder["handle"][] = [];
  const pinned = new Set<string>();
  const add = (kind: "write" | "read", path: string, handle: OpenFolder["handle"]) => {
    handles.push(handle);
    mounts.push({ kind, path, descriptor: first + handles.length - 1 });
  };
  try {
    for (const rule of rules) {
      const names = rule.path.split("/");
      const make = rule.make ? { owner } : undefined;
      const target = await openTarget(workspace, names, make).catch((error: unknown) => {
        // It was replaced just now: a setting that doesn't exist can't be protected.
        if (rule.kept) return undefined;
        throw refusedRule(rule, error);
      });
      if (target === undefined) continue;
      for (let length = 1; length < names.length; length++) {
        const path = names.slice(0, length).join("/");
        if (pinned.has(path) || accessAt(rules, path, writable) !== "write") continue;
        pinned.add(path);
        add("write", path, (await openBeneath(workspace, names.slice(0, length))).handle);
      }
      if (rule.access === "none") {
        mounts.push({ kind: target.isFolder ? "hide-folder" : "hide-file", path: rule.path });
        await target.handle.close();
      } else {
        pinned.add(rule.path);
        add(rule.access, rule.path, target.handle);
      }
    }
    return { mounts, handles };
  } catch (error) {
    await Promise.all(handles.map((handle) => handle.close()));
    throw error;
  }
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
const asPlace = 0o10000000 | constants.O_NOFOLLOW;

async function openTarget(
  workspace: string,
  names: readonly string[],
  make: { readonly owner: Ownership | undefined } | undefined,
): Promise<{ handle: OpenFolder["handle"]; isFolder: boolean } | undefined> {
  const name = names.at(-1) ?? "";
  let parent: OpenFolder;
  try {
    parent = await openBeneath(workspace, names.slice(0, -1), make);
  } catch (error) {
    if (make === undefined && error instanceof Error && codeOf(error.cause) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const handle = await open(inFolder(parent, name), asPlace);
    const found = await handle.stat();
    if (!found.isSymbolicLink()) return { handle, isFolder: found.isDirectory() };
    await handle.close();
    throw Object.assign(new Error("a link"), { code: "ELOOP" });
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw refusal(`${parent.shown}/${name}`, error);
    if (make === undefined) return undefined;
    const { handle } = await openBeneath(workspace, names, make);
    return { handle, isFolder: true };
  } finally {
    await parent.handle.close();
  }
}
