import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSandboxImage, sandboxImageName } from "@ambit/sandbox-image";

const cache = fileURLToPath(new URL("../../../.cache/sandbox-image", import.meta.url));

/** The archive of the default sandbox image. It is built once, and again when its recipe changes. */
export async function imageArchive(): Promise<string> {
  const name = `${sandboxImageName().replace(":", "-")}.tar`;
  const archive = join(cache, name);
  if (existsSync(archive)) return archive;
  await mkdir(cache, { recursive: true });
  await buildSandboxImage(archive);
  for (const other of await readdir(cache))
    if (other.endsWith(".tar") && other !== name) await rm(join(cache, other), { force: true });
  return archive;
}
