import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  cgroupNames,
  createOwnedFolder,
  isLeft,
  leftNames,
  type OwnedFolder,
  ownerOf,
  removeCgroups,
} from "@ambit/test-machine";

const execute = promisify(execFile);

const prefix = "ambit-docker";

/** A folder whose name, which the engine's cgroup also has, tells whether its owner lives. */
export async function createFolder(): Promise<OwnedFolder> {
  return await createOwnedFolder(prefix);
}

/** The bridges of an engine's networks, which are the host's: unlike its other parts they outlive a killed engine. */
export function bridgesOf(name: string): { readonly sandboxes: string; readonly compose: string } {
  const pid = ownerOf(prefix, name);
  return { sandboxes: `ambit${pid}s`, compose: `ambit${pid}c` };
}

export async function removeBridges(name: string): Promise<void> {
  // It fails if there is none.
  for (const bridge of Object.values(bridgesOf(name)))
    await execute("ip", ["link", "delete", bridge, "type", "bridge"]).catch(() => {});
}

/**
 * Removes what killed owners left: folders, cgroups and bridges. Processes and mounts are gone already: an engine ends with its
 * owner, and its namespaces with it.
 */
export async function removeLeftovers(): Promise<void> {
  const groups = (await cgroupNames()).filter((name) => isLeft(prefix, name));
  for (const name of new Set([...(await leftNames(prefix)), ...groups])) {
    await removeCgroups(name);
    await removeBridges(name);
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
