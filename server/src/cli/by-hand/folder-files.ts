import { constants } from "node:fs";
import { lstat, open, readdir, readlink, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { inFolder, type OpenFolder } from "@ambit/backend-kit/safe-fs";
import { limits } from "@ambit/core";
import { codeOf } from "@ambit/core/plugin";
import { isGitFolder } from "@ambit/workspace";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { readGit } from "./git.js";
import { openParent } from "./local-file.js";

/** Bytes of all files together: they are sent as one request. */
const maxBytes = 256 * 1024 * 1024;
/** Characters of what git says where it can't list. */
const maxSaid = 600;

export interface FolderFile {
  /** Relative to the folder. */
  readonly path: string;
  readonly content: Buffer;
  readonly executable: boolean;
}

export interface FolderFiles {
  readonly files: readonly FolderFile[];
  readonly links: readonly FolderLink[];
  /** Paths that aren't copied: what is behind a link, and what is no regular file or has an unusual name. */
  readonly leftOut: readonly string[];
  /** What git ignores; a folder that is ignored whole has a slash at its end. Undefined outside of a repository. */
  readonly ignored: readonly string[] | undefined;
}

export interface FolderLink {
  readonly path: string;
  readonly target: string;
}

/**
 * A copy of the folder's files: in a git repository those that git knows, and others that it doesn't ignore; elsewhere all.
 * @throws ConfigurationInvalid for a folder that can't be read, or that is too large
 */
export async function filesIn(given: string): Promise<FolderFiles> {
  const folder = await realpath(given).catch((cause: unknown) => {
    throw unreadable(given, cause);
  });
  if (!(await stat(folder)).isDirectory())
    throw new ConfigurationInvalid(given, ["is no folder: name the one that holds it"]);
  const listed = await gitsList(folder, "--cached");
  const paths = listed ?? (await allPaths(folder));
  const tooMany = `has more than ${limits.sourceFiles.toLocaleString("en")} files: name a folder below it`;
  if (paths.length > limits.sourceFiles) throw new ConfigurationInvalid(given, [tooMany]);
  const files: FolderFile[] = [];
  const links: FolderLink[] = [];
  const leftOut: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const file = isOrdinary(path) ? await readFile(folder, path, listed !== undefined) : "other";
    if (file === "gone") continue;
    if (file === "other") leftOut.push(path);
    else if ("target" in file) links.push(file);
    else {
      bytes += file.content.length;
      if (bytes > maxBytes)
        throw new ConfigurationInvalid(folder, [`is larger than ${maxBytes} bytes: name a folder below it`]);
      files.push(file);
    }
  }
  const ignored = listed && (await gitsList(folder, "--ignored", "--directory"));
  return { files, links, leftOut, ignored };
}

/**
 * Undefined where the folder isn't in a repository, or there is no git. Nothing that the repository configures is run.
 * @throws ConfigurationInvalid where git can't list: what it ignores would be copied too
 */
async function gitsList(folder: string, ...which: readonly string[]): Promise<readonly string[] | undefined> {
  try {
    const stdout = await readGit(folder, ["ls-files", "-z", "--others", "--exclude-standard", ...which]);
    return [...new Set(stdout.split("\0").filter((path) => path !== ""))].sort();
  } catch (error) {
    if (error instanceof Error && "isMaxBuffer" in error && error.isMaxBuffer === true)
      throw new ConfigurationInvalid(folder, ["has too many files: name a folder below it"]);
    const said = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
    if (codeOf(error) === "ENOENT" || /^fatal: not a git repository \(or any/m.test(said)) return undefined;
    const why = said.trim().replaceAll(/\s+/g, " ").slice(0, maxSaid);
    throw new ConfigurationInvalid(folder, [
      `is in a git repository whose files git can't list (${why}): mend that, or name a folder outside of it`,
    ]);
  }
}

async function allPaths(folder: string): Promise<readonly string[]> {
  const paths: string[] = [];
  const look = async (below: string) => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) await look(path);
      else paths.push(path);
      if (paths.length > limits.sourceFiles) return;
    }
  };
  await look("").catch((cause: unknown) => {
    throw unreadable(folder, cause);
  });
  return paths.sort();
}

/** A name that can also leave a workspace again; nothing that git keeps. */
function isOrdinary(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const isPlain = !/[\u0000-\u001f\u007f\\\ufffd]/.test(path) && path.length <= 4_096;
  return isPlain && !path.split("/").some((name) => name === ".." || isGitFolder(name));
}

async function readFile(
  folder: string,
  path: string,
  isInGit: boolean,
): Promise<FolderFile | FolderLink | "gone" | "other"> {
  const full = join(folder, path);
  const names = path.split("/");
  const name = names.pop() ?? "";
  let parent: OpenFolder | undefined;
  try {
    parent = await openParent(folder, names);
    const listed = await lstat(inFolder(parent, name));
    if (listed.isSymbolicLink()) return { path, target: await readlink(inFolder(parent, name)) };
    if (!listed.isFile()) return "other";
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(inFolder(parent, name), flags);
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return "other";
      if (stats.size > maxBytes)
        throw new ConfigurationInvalid(full, [
          `is larger than ${maxBytes} bytes: ${isInGit ? "exclude it in .gitignore" : "move it out of the folder"}`,
        ]);
      return { path, content: await handle.readFile(), executable: (stats.mode & 0o100) !== 0 };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof ConfigurationInvalid) throw error;
    const code = codeOf(error) ?? "";
    if (code === "ENOENT") return "gone";
    // A link, or a file where git knows a folder.
    if (code === "ELOOP" || code === "ENOTDIR") return "other";
    throw unreadable(full, error);
  } finally {
    await parent?.handle.close();
  }
}

function unreadable(path: string, cause: unknown): ConfigurationInvalid {
  return new ConfigurationInvalid(path, [`can't be read: ${codeOf(cause) ?? String(cause)}`], { cause });
}
