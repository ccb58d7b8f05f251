import { type Mount, parseMounts } from "../process/mount-table.js";
import type { WorkspaceMount } from "./launch/arguments.js";
import { inside } from "./launch/inside.js";

/**
 * The planned mounts of the workspace that a jail doesn't have: not there, of another place, or with another access.
 * They were made by name, so they are compared with what the kernel says. Pure.
 *
 * @param table the `mountinfo` of a process in the jail.
 * @returns their paths, relative to the workspace.
 */
export function misplacedMounts(table: string, planned: readonly WorkspaceMount[]): readonly string[] {
  const byPath = new Map(parseMounts(table).map((mount) => [mount.path, mount]));
  const workspace = byPath.get(inside.workspace);
  return planned
    .filter((mount) => !isInPlace(mount, byPath.get(`${inside.workspace}/${mount.path}`), workspace))
    .map(({ path }) => path);
}

function isInPlace(
  { kind, path }: WorkspaceMount,
  found: Mount | undefined,
  workspace: Mount | undefined,
): boolean {
  if (found === undefined || workspace === undefined) return false;
  if (kind === "hide-folder") return found.isReadOnly && found.root === "/" && isOther(found, workspace);
  if (kind === "hide-file") return found.root.endsWith("/null") && isOther(found, workspace);
  const root = workspace.root === "/" ? "" : workspace.root;
  return (
    found.device === workspace.device &&
    found.root === `${root}/${path}` &&
    found.isReadOnly === (kind === "read")
  );
}

const isOther = (one: Mount, other: Mount) => one.device !== other.device;
