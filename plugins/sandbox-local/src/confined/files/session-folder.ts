import type { FileHandle } from "node:fs/promises";
import { openBeneath, type PathMapping } from "@ambit/backend-kit/safe-fs";

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
