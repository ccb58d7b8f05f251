import { chmod, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ResourceLimits } from "@ambit/core/plugin";
import type { SessionGroups } from "../../cgroup/session-groups.js";
import { settingsFor } from "../../cgroup/session-groups.js";
import { makeReadableFolder, writeReadable } from "../../folders/data-folder.js";
import type { ShownPath } from "../launch/arguments.js";
import { isPassable } from "./required-paths.js";

/** Where programs look for their limits. */
const groupsInside = "/sys/fs/cgroup";

/**
 * The session's groups as its programs find them, read-only, in the order of their mounts: under version 2 the group itself.
 * Under version 1 a folder with each controller's group, and with the files that version 2 would have, since many programs
 * know only those.
 *
 * @param folder the session's folder.
 * @param isOtherUser whether its jails run as another user than the runner.
 */
export async function limitFiles(
  { limited }: Pick<SessionGroups, "limited">,
  limits: ResourceLimits,
  folder: string,
  isOtherUser: boolean,
): Promise<readonly ShownPath[]> {
  // The runner's umask may have closed them.
  for (const { path } of limited.values()) await chmod(path, 0o755);
  const groups = [...limited.values()];
  const reachable = await Promise.all(groups.map(({ path }) => !isOtherUser || isPassable(path)));
  const [unified] = groups;
  if (
    unified !== undefined &&
    reachable.every(Boolean) &&
    groups.every(({ path, version }) => version === 2 && path === unified.path)
  )
    return [{ source: unified.path, path: groupsInside }];
  const view = join(folder, "limits");
  await makeReadableFolder(view);
  const settings = Object.values(settingsFor(limits, 2)).flat();
  for (const { file, value, optional } of settings)
    if (!optional) await writeReadable(join(view, file), `${value}\n`);
  const mounts: ShownPath[] = [];
  for (const [index, { path, version, root }] of groups.entries()) {
    if (version === 2 || reachable[index] !== true) continue;
    // Such as `cpu,cpuacct`, with a link for each of its controllers.
    const hierarchy = basename(root);
    await makeReadableFolder(join(view, hierarchy));
    const names = hierarchy.split(",").filter((name) => name !== hierarchy);
    for (const name of names) await symlink(hierarchy, join(view, name));
    mounts.push({ source: path, path: join(groupsInside, hierarchy) });
  }
  return [{ source: view, path: groupsInside }, ...mounts];
}
