import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { chmod, mkdir, readdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atExit, isListening, listenAt } from "@ambit/backend-kit";
import { type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import { makePassage } from "./data-folder.js";
import { diskMount } from "./disk.js";
import { Trash } from "./trash.js";

const lifeline = "alive";
/** Made by who first sees that the runner is dead. */
const deathMark = "dead";
/** Folders that each session has one of. */
const sessionMarks = ["workspace", diskMount];
const unfinished = ".new-";
const unfinishedForMs = 60_000;

/**
 * When the process ends by itself with all sessions closed. If one is open, the next start needs the folder to find its
 * processes and cgroups.
 */
function removeUnused(path: string): void {
  if (!existsSync(path)) return;
  const isOpen = readdirSync(path).some((name) =>
    sessionMarks.some((mark) => existsSync(join(path, name, mark))),
  );
  if (!isOpen) rmSync(path, { recursive: true, force: true });
}

/** This runner's own part of the data folder. */
export interface RunnerFolder {
  /** Unguessable, and unique among all runners that share the data folder. */
  readonly key: string;
  readonly path: string;
  /** Receives what is no longer needed. */
  readonly trash: Trash;
  /** Removes the folder; other runners then consider this one gone. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Makes the folder, with a lifeline in it that shows other runners whether this one lives.
 */
export async function claimRunnerFolder(dataFolder: string): Promise<RunnerFolder> {
  await makePassage(dataFolder);
  const runners = runnersIn(dataFolder);
  await makePassage(runners);
  const trash = await Trash.open(dataFolder);
  const key = randomBytes(12).toString("hex");
  const path = join(runners, key);
  // It gets its final name once it responds, so that no reaper takes it for a dead one.
  const early = join(runners, `${unfinished}${key}`);
  await mkdir(early);
  await chmod(early, 0o711);
  const folder = await openFolder(early);
  const server = await listenAt(folder, lifeline);
  await rename(early, path);
  const keep = atExit(() => removeUnused(path));
  return {
    key,
    path,
    trash,
    async close() {
      keep();
      await trash.discard(path);
      await trash.close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await folder.handle.close();
    },
  };
}

/** Folders of runners that are gone, with the key of each. */
export async function deadRunners(dataFolder: string): Promise<readonly { key: string; path: string }[]> {
  const runners = runnersIn(dataFolder);
  const names = await readdir(runners).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
  const dead: { key: string; path: string }[] = [];
  for (const name of names) {
    const path = join(runners, name);
    const isUnfinished = name.startsWith(unfinished);
    if (isUnfinished ? await isOld(path) : !(await isAlive(path))) {
      dead.push({ key: isUnfinished ? name.slice(unfinished.length) : name, path });
    }
  }
  return dead;
}

/** Milliseconds since another runner first saw that this one is dead. */
export async function deadForMs(path: string): Promise<number> {
  const mark = join(path, deathMark);
  await writeFile(mark, "", { flag: "wx" }).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  return Date.now() - (await stat(mark)).mtimeMs;
}

/** The folder of a runner that has ended. @throws SandboxFailed while it lives */
export async function deadRunner(dataFolder: string, key: string): Promise<string> {
  const path = join(runnersIn(dataFolder), key);
  if (existsSync(path) && (await isAlive(path)))
    throw new SandboxFailed("The server that has them lives", { concerns: "session" });
  return path;
}

function runnersIn(dataFolder: string): string {
  return join(dataFolder, "runners");
}

async function isAlive(path: string): Promise<boolean> {
  let folder: OpenFolder;
  try {
    folder = await openFolder(path);
  } catch (error) {
    // Another runner removed it since it was listed: nothing to reap.
    return ["ENOENT", "EACCES"].includes(codeOf(error) ?? "") || isNoFolder(error);
  }
  try {
    return await isListening(folder, lifeline);
  } finally {
    await folder.handle.close();
  }
}

/** Something that no runner put there is not touched. */
function isNoFolder(error: unknown): boolean {
  return codeOf(error) === "ENOTDIR" || codeOf(error) === "ELOOP";
}

async function isOld(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > unfinishedForMs;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
