import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { constants } from "node:fs";
import { chmod, lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "@ambit/core/plugin";
import { isGitFolder } from "@ambit/workspace";
import { z } from "zod";
import { ConfigurationInvalid } from "../../../configuration/problems.js";

/** Files, folders and links of one folder. */
const maxEntries = 500_000;
/** Bytes of its files. */
const maxBytes = 8 * 1024 ** 3;
/** Files that are read at the same time. */
const atOnce = 16;

const entrySchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("folder"), path: z.string(), mode: z.int() }),
  z.strictObject({ kind: z.literal("link"), path: z.string(), target: z.string() }),
  z.strictObject({
    kind: z.literal("file"),
    path: z.string(),
    mode: z.int(),
    sha256: z.string(),
    /** Inode, size and times: as long as they are the same, so is the content. */
    stamp: z.string(),
  }),
]);
export type TreeEntry = z.infer<typeof entrySchema>;

export const treeSchema = z.strictObject({
  entries: z.array(entrySchema),
  /** What git takes for a repository: paths of a `.git`, and of folders that are one. Nothing in them is an entry. */
  repositories: z.array(z.string()),
});

/** What is in a folder. */
export type Tree = z.infer<typeof treeSchema>;

export interface TreeOptions {
  /** An earlier look: what is unchanged since isn't read again. */
  readonly earlier: Tree | undefined;
  /** Keeps a file that was read. @param path absolute @returns its digest */
  readonly read: (path: string) => Promise<string>;
}

/**
 * Looks at a folder in which no agent runs. No link is followed.
 * @throws ConfigurationInvalid for one that is too large, or that has names that aren't UTF-8
 */
export async function readTree(folder: string, { earlier, read }: TreeOptions): Promise<Tree> {
  const unchanged = new Map(
    earlier?.entries.flatMap((entry) => (entry.kind === "file" ? [[entry.path, entry] as const] : [])),
  );
  const entries: TreeEntry[] = [];
  const repositories: string[] = [];
  const files: { readonly path: string; readonly stats: BigIntStats }[] = [];
  let bytes = 0n;
  let count = 0;
  const look = async (below: string): Promise<void> => {
    const names = await namesIn(join(folder, below));
    if (below !== "" && isRepository(names)) {
      repositories.push(below);
      return;
    }
    for (const bytesOfName of names.sort(Buffer.compare)) {
      const name = bytesOfName.toString("utf8");
      if (!Buffer.from(name).equals(bytesOfName))
        throw tooMuch(folder, `has a name in ${below || "it"} that isn't UTF-8: rename it`);
      const path = below === "" ? name : `${below}/${name}`;
      count += 1;
      if (count > maxEntries)
        throw tooMuch(
          folder,
          `has more than ${maxEntries.toLocaleString("en")} files: name a folder below it`,
        );
      if (isGitFolder(name)) {
        repositories.push(path);
        continue;
      }
      const stats = await lstat(join(folder, path), { bigint: true });
      if (stats.isSymbolicLink())
        entries.push({ kind: "link", path, target: await readlink(join(folder, path)) });
      else if (stats.isDirectory()) {
        entries.push({ kind: "folder", path, mode: Number(stats.mode & 0o777n) });
        await look(path);
      } else if (stats.isFile()) {
        bytes += stats.size;
        if (bytes > maxBytes)
          throw tooMuch(folder, `is larger than ${maxBytes / 1024 ** 3} GiB: name a folder below it`);
        files.push({ path, stats });
      }
    }
  };
  await look("");
  const digest = async ({ path, stats }: (typeof files)[number]): Promise<TreeEntry> => {
    const stamp = [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(":");
    const earlierEntry = unchanged.get(path);
    const sha256 = earlierEntry?.stamp === stamp ? earlierEntry.sha256 : await read(join(folder, path));
    return { kind: "file", path, mode: Number(stats.mode & 0o777n), sha256, stamp };
  };
  for (let at = 0; at < files.length; at += atOnce)
    entries.push(...(await Promise.all(files.slice(at, at + atOnce).map(digest))));
  return { entries: entries.sort((one, other) => (one.path < other.path ? -1 : 1)), repositories };
}

/** Git takes a folder for a repository, whatever its name is, by what is in it (gitrepository-layout). */
function isRepository(names: readonly Buffer[]): boolean {
  const has = (wanted: string) => names.some((name) => name.toString("latin1") === wanted);
  return has("HEAD") && (has("objects") || has("commondir"));
}

/** An agent may have closed its folders: their owner opens them again. */
async function namesIn(path: string): Promise<Buffer[]> {
  try {
    return await readdir(path, { encoding: "buffer" });
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
    const { mode } = await lstat(path);
    await chmod(path, (mode & 0o777) | 0o700);
    return await readdir(path, { encoding: "buffer" });
  }
}

export async function digestOf(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const hash = createHash("sha256");
  try {
    for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece);
  } finally {
    await handle.close();
  }
  return hash.digest("hex");
}

/** Whether two entries of one path are the same for a person: content, mode, target. Pure. */
export function isSame(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.kind === "file")
    return other.kind === "file" && one.sha256 === other.sha256 && one.mode === other.mode;
  if (one.kind === "link") return other.kind === "link" && one.target === other.target;
  return other.kind === "folder" && one.mode === other.mode;
}

function tooMuch(folder: string, why: string): ConfigurationInvalid {
  return new ConfigurationInvalid(folder, [`${why}, or leave --in-place out to work on a copy`]);
}
