import { realpath, stat } from "node:fs/promises";
import { type Boundary, SandboxFailed } from "@ambit/core/plugin";

/**
 * Checks that a folder of the user's can be a session's workspace itself.
 * @throws SandboxFailed
 */
export async function requireUsable(
  folder: string,
  dataFolder: string,
  { diskMb }: Pick<Boundary["resources"], "diskMb">,
): Promise<void> {
  const refuse = (why: string) =>
    new SandboxFailed(`${folder} can't be the workspace itself: ${why}`, { concerns: "session" });
  if (diskMb !== undefined)
    throw refuse("its size can't be limited: leave resources.diskMb out, or work on a copy");
  const uid = process.getuid?.();
  if (uid === 0)
    throw refuse(
      "as root, each session has a user of its own, who may not write your files: run Ambit as the folder's owner, or work on a copy",
    );
  const stats = await stat(folder).catch(() => undefined);
  if (stats?.isDirectory() !== true || (await realpath(folder)) !== folder)
    throw refuse("it is no folder, or there is a link in its path");
  if (stats.uid !== uid) throw refuse("it is another user's: run Ambit as its owner, or work on a copy");
  const data = await realpath(dataFolder).catch(() => dataFolder);
  if (isWithin(data, folder) || isWithin(folder, data))
    throw refuse(`it holds Ambit's own data (${data}), or is in it: name a folder below it`);
}

const isWithin = (path: string, folder: string) => `${path}/`.startsWith(folder === "/" ? "/" : `${folder}/`);
