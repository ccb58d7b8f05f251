import { spawnSync } from "node:child_process";
import { mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describeStore, type StoreRig } from "@ambit/testkit/vitest";

/** A folder on a separate small disk, if this user may mount one. */
async function folderOf(): Promise<{ folder: string; mounted: boolean; unmount(): void }> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-sqlite-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", folder]);
  const mounted = status === 0;
  return { folder, mounted, unmount: () => mounted && spawnSync("umount", [folder]) };
}

async function makeRig(): Promise<StoreRig> {
  const { folder, mounted, unmount } = await folderOf();
  const file = join(folder, "runs.sqlite");
  const filling = join(folder, "filling");
  return {
    module: import.meta.resolve("@ambit/store-sqlite"),
    config: { file },
    // Nothing to disconnect: a file has no connection.
    drop: async () => {},
    setSchema: async (version) => {
      const database = new DatabaseSync(file);
      database.exec(`PRAGMA user_version = ${version}`);
      database.close();
    },
    ...(mounted
      ? {
          fill: async () => {
            const { bavail, bsize } = await statfs(folder);
            await writeFile(filling, Buffer.alloc(bavail * bsize - 65_536));
            return () => rm(filling);
          },
        }
      : { fullReason: "no file system can be mounted here, so no disk can be filled" }),
    close: async () => {
      unmount();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

describeStore("sqlite", makeRig);
