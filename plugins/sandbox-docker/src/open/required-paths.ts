import { realpath } from "node:fs/promises";
import { type RequiredPath, SandboxFailed } from "@ambit/core/plugin";

/**
 * No mount may show Ambit's own data, also not by a link.
 * @throws SandboxFailed naming what is installed in such a folder
 */
export async function requireOutside(dataFolder: string, paths: readonly RequiredPath[]): Promise<void> {
  const data = await realPath(dataFolder);
  for (const { path, what } of paths) {
    const real = await realPath(path);
    if (!`${data}/`.startsWith(real.endsWith("/") ? real : `${real}/`)) continue;
    throw new SandboxFailed(
      `${what} can't be mounted: its folder contains Ambit's own data. Install it in another folder`,
    );
  }
}

/** The path itself where there is nothing: the engine says so. */
const realPath = (path: string) => realpath(path).catch(() => path);
