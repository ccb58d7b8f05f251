import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOwnedFolder, isLeft, leftNames, type OwnedFolder } from "@ambit/test-machine";
import { removeLeftCgroups } from "./runner/container/cgroups.js";

const prefix = "ambit-daytona";

/** A separate folder. Its name, which the cgroups have too, shows whether its owner lives. */
export async function createFolder(): Promise<OwnedFolder> {
  return await createOwnedFolder(prefix);
}

/**
 * Removes what killed owners left: folders and cgroups. Namespaces, links, mounts and processes end with the runner,
 * which ends with its owner.
 */
export async function removeLeftovers(): Promise<void> {
  for (const name of await leftNames(prefix))
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  await removeLeftCgroups((name) => isLeft(prefix, name));
}
