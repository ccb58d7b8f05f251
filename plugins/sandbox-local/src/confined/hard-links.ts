import { constants } from "node:fs";
import { lstat, open, opendir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { inFolder, openBeneath, SandboxFailed } from "@ambit/core/plugin";
import { mostRepositories } from "./kept-paths.js";

/** A file that has more names than the workspace shows: writing it here writes it there. */
export interface OutsideLink {
  /** Names relative to the workspace. */
  readonly paths: readonly string[];
}

/** What a look through a workspace finds. */
export interface Findings {
  readonly outsideLinks: readonly OutsideLink[];
  /** Paths of the first repositories' `.git`, whatever it is, except the workspace's own. */
  readonly repositories: readonly string[];
}

/**
 * Looks through a tree once, for repositories and for files that have names outside it too. A jail can't make such a link; one that somebody put there leads
 * out through every mount. Links among the tree's own files (package managers make them) are none.
 */
export async function lookThrough(root: string): Promise<Findings> {
  const seen: Seen = { byInode: new Map(), repositories: [] };
  await walk(root, "", seen);
  const outsideLinks = [...seen.byInode.values()].filter(({ links, paths }) => links > paths.length);
  return { outsideLinks, repositories: seen.repositories };
}

interface Seen {
  readonly byInode: Map<string, { links: number; paths: string[] }>;
  readonly repositories: string[];
}

async function walk(root: string, folder: string, seen: Seen): Promise<void> {
  for await (const entry of await opendir(join(root, folder))) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.name === ".git" && folder !== "" && seen.repositories.length < mostRepositories) {
      seen.repositories.push(path);
    }
    if (entry.isDirectory()) {
      await walk(root, path, seen);
      continue;
    }
    if (!entry.isFile()) continue;
    const { nlink, dev, ino } = await lstat(join(root, path));
    if (nlink < 2) continue;
    const key = `${dev}:${ino}`;
    const known = seen.byInode.get(key) ?? { links: nlink, paths: [] };
    known.paths.push(path);
    seen.byInode.set(key, known);
  }
}

/**
 * Refuses a workspace that holds such files, or gives each name a copy of its own.
 *
 * @throws SandboxFailed naming the first ones, under `refuse`.
 */
export async function settleOutsideLinks(
  root: string,
  links: readonly OutsideLink[],
  policy: "refuse" | "copy",
): Promise<void> {
  const found = links.flatMap(({ paths }) => paths);
  if (found.length === 0) return;
  if (policy === "refuse") {
    const shown = found.slice(0, 3).join(", ");
    throw new SandboxFailed(
      `The workspace holds files that have names outside it too (hard links): ${shown}: copy them instead, or set sandbox-local's hardLinks to "copy"`,
    );
  }
  for (const path of found) await replaceByCopy(root, path.split("/"));
}

async function replaceByCopy(root: string, names: readonly string[]): Promise<void> {
  const name = names.at(-1) ?? "";
  const folder = await openBeneath(root, names.slice(0, -1));
  const draft = inFolder(folder, `.ambit-copy-${process.pid}`);
  try {
    const source = await open(
      inFolder(folder, name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const { mode, uid, gid } = await source.stat();
      const copy = await open(draft, "wx", mode & 0o777);
      try {
        for await (const chunk of source.createReadStream({ autoClose: false })) await copy.writeFile(chunk);
        await copy.chown(uid, gid);
        await copy.chmod(mode & 0o777);
      } finally {
        await copy.close();
      }
      await rename(draft, inFolder(folder, name));
    } finally {
      await source.close();
    }
  } finally {
    await rm(draft, { force: true });
    await folder.handle.close();
  }
}
