import { inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";

/**
 * Opens the folder of a path below the user's folder, without following a link on the way, and without changing the mode of one
 * that can't be read.
 * @throws Error with the code of what is in the way
 */
export async function openParent(folder: string, names: readonly string[]): Promise<OpenFolder> {
  let opened = await openFolder(folder);
  for (const name of names) {
    const above = opened;
    try {
      opened = await openFolder(inFolder(above, name));
    } finally {
      await above.handle.close();
    }
  }
  return opened;
}
