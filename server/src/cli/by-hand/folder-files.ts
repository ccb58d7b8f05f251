import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { lstat, open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inFolder, type OpenFolder } from "@ambit/backend-kit/safe-fs";
import { limits } from "@ambit/core";
import { codeOf } from "@ambit/core/plugin";
import { isGitFolder } from "@ambit/workspace";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { openParent } from "./open-parent.js";

/** Bytes of all files together: they are sent as one request. */
const maxBytes = 256 * 1024 * 1024;
/** Bytes of git's list. */
const maxListBytes = 64 * 1024 * 1024;
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
  /** Paths that aren't copied: links, what is behind one, and what is no regular file or has an unusual name. */
  readonly leftOut: readonly string[];
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
  const paths = (await gitsList(folder)) ?? (await allPaths(folder));
  const tooMany = `has more than ${limits.sourceFiles.toLocaleString("en")} files: name a folder below it`;
  if (paths.length > limits.sourceFiles) throw new ConfigurationInvalid(given, [tooMany]);
  const files: FolderFile[] = [];
  const leftOut: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const file = isOrdinary(path) ? await readFile(folder, path) : "other";
    if (file === "gone") continue;
    if (file === "other") leftOut.push(path);
    else {
      bytes += file.content.length;
      if (bytes > maxBytes)
        throw new ConfigurationInvalid(folder, [`is larger than ${maxBytes} bytes: name a folder below it`]);
      files.push(file);
    }
  }
  return { files, leftOut };
}

/** So that git fetches nothing: for an object that is missing, it would run the program that the repository configures. */
const withoutFetching = { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1" } as const;

/**
 * Undefined where the folder isn't in a repository, or there is no git. Nothing that the repository configures is run.
 * @throws ConfigurationInvalid where git can't list: what it ignores would be copied too
 */
async function gitsList(folder: string): Promise<readonly string[] | undefined> {
  const argv = ["-c", "core.fsmonitor=false", "-C", folder, "ls-files", "-z"];
  try {
    const { stdout } = await promisify(execFile)(
      "git",
      [...argv, "--cached", "--others", "--exclude-standard"],
      {
        maxBuffer: maxListBytes,
        encoding: "utf8",
        // In English: its words say whether this is a repository.
        env: { ...process.env, ...withoutFetching, LC_ALL: "C" },
      },
    );
    return [...new Set(stdout.split("\0").filter((path) => path !== ""))].sort();
  } catch (error) {
    if (codeOf(error) === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER")
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

async function readFile(folder: string, path: string): Promise<FolderFile | "gone" | "other"> {
  const full = join(folder, path);
  const names = path.split("/");
  const name = names.pop() ?? "";
  let parent: OpenFolder | undefined;
  try {
    parent = await openParent(folder, names);
    if (!(await lstat(inFolder(parent, name))).isFile()) return "other";
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(inFolder(parent, name), flags);
    try {
      const found = await handle.stat();
      if (!found.isFile()) return "other";
      if (found.size > maxBytes)
        throw new ConfigurationInvalid(full, [`is larger than ${maxBytes} bytes: exclude it in .gitignore`]);
      return { path, content: await handle.readFile(), executable: (found.mode & 0o100) !== 0 };
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
