import { execFile } from "node:child_process";
import { lstat, mkdir, readlink, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { removeCgroups } from "@ambit/test-machine";
import Docker from "dockerode";
import { startDaemon } from "./daemon.js";
import { createFolder, removeLeftovers } from "./leftovers.js";

const execute = promisify(execFile);

/**
 * An engine that a test may fill or kill, ready sooner: its only image has no programs but those of this host.
 */
export interface SmallEngine {
  readonly socket: string;
  readonly image: string;
  /** What a container of the image needs: this host's programs, read-only. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[];
  /** Node.js inside. */
  readonly node: string;
  close(): Promise<void>;
}

const image = "small";
const node = "/opt/node";
/** Folders that containers mount something on. */
const mountPoints = ["ambit", "dev", "etc", "opt/ambit", "opt/node", "proc", "sys", "tmp", "usr", "var/tmp"];
/** Where programs and libraries are: links to /usr, or folders. */
const ofPrograms = ["bin", "sbin", "lib", "lib64"];

/**
 * Needs root, and dockerd: ask `unavailableReason` first.
 *
 * @param dataMb the size of all its data, in MiB, which is in memory then. Default: on disk, without a limit.
 */
export async function startSmallEngine(dataMb?: number): Promise<SmallEngine> {
  await removeLeftovers();
  const { folder, name } = await createFolder();
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const one of undo.splice(0).reverse()) await one();
  };
  try {
    undo.push(() => removeCgroups(name));
    const { socket, stop } = await startDaemon(folder, name, dataMb);
    undo.push(stop);
    const mounts = [
      { source: "/usr", target: "/usr" },
      { source: dirname(dirname(process.execPath)), target: node },
      ...(await importImage(socket, join(folder, "root"))),
    ];
    return { socket, image, mounts, node: `${node}/bin/node`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @returns what else of this host its containers need. */
async function importImage(socket: string, root: string): Promise<SmallEngine["mounts"]> {
  for (const path of mountPoints) await mkdir(join(root, path), { recursive: true });
  const mounts: { source: string; target: string }[] = [];
  for (const name of ofPrograms) {
    const found = await lstat(`/${name}`).catch(() => undefined);
    if (found?.isSymbolicLink()) await symlink(await readlink(`/${name}`), join(root, name));
    else if (found?.isDirectory()) {
      await mkdir(join(root, name));
      mounts.push({ source: `/${name}`, target: `/${name}` });
    }
  }
  const archive = `${root}.tar`;
  await execute("tar", ["-C", root, "-cf", archive, "."]);
  const progress = await new Docker({ socketPath: socket }).importImage(archive, { repo: image });
  await text(progress);
  return mounts;
}
