import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { lstat, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { limits } from "@ambit/core";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";

/** Bytes of all files together: they are sent as one request. */
const maxBytes = 256 * 1024 * 1024;
/** Bytes of git's list. */
const maxListBytes = 64 * 1024 * 1024;

export interface FolderFile {
  /** Relative to the folder. */
  readonly path: string;
  readonly content: Buffer;
  readonly executable: boolean;
}

export interface FolderFiles {
  readonly files: readonly FolderFile[];
  /** Paths that aren't copied: links, and what is no regular file or has an unusual name. */
  readonly leftOut: readonly string[];
}

/**
 * A copy of the folder's files: in a git repository those that git knows, and others that it doesn't ignore; elsewhere all.
 * @throws ConfigurationInvalid for a folder that can't be read, or that is too large
 */
export async function filesIn(folder: string): Promise<FolderFiles> {
  const paths = (await gitsList(folder)) ?? (await allPaths(folder));
  const tooMany = `has more than ${limits.sourceFiles.toLocaleString("en")} files: name a folder below it`;
  if (paths.length > limits.sourceFiles) throw new ConfigurationInvalid(folder, [tooMany]);
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

/** Undefined where the folder isn't in a repository, or there is no git. Nothing that the repository configures is run. */
async function gitsList(folder: string): Promise<readonly string[] | undefined> {
  const argv = ["-c", "core.fsmonitor=false", "-C", folder, "ls-files", "-z"];
  try {
    const { stdout } = await promisify(execFile)(
      "git",
      [...argv, "--cached", "--others", "--exclude-standard"],
      { maxBuffer: maxListBytes, encoding: "utf8" },
    );
    return [...new Set(stdout.split("\0").filter((path) => path !== ""))].sort();
  } catch (error) {
    if (codeOf(error) === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER")
      throw new ConfigurationInvalid(folder, ["has too many files: name a folder below it"]);
    return undefined;
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
    throw new ConfigurationInvalid(folder, [`can't be read: ${codeOf(cause) ?? String(cause)}`], { cause });
  });
  return paths.sort();
}

/** A name that can also leave a workspace again; nothing that git keeps. */
function isOrdinary(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const isPlain = !/[\u0000-\u001f\u007f\\\ufffd]/.test(path) && path.length <= 4_096;
  return isPlain && !path.split("/").some((name) => name === ".." || name.toLowerCase() === ".git");
}

async function readFile(folder: string, path: string): Promise<FolderFile | "gone" | "other"> {
  const full = join(folder, path);
  try {
    if (!(await lstat(full)).isFile()) return "other";
    const handle = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
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
    if (codeOf(error) === "ENOENT") return "gone";
    throw new ConfigurationInvalid(full, [`can't be read: ${codeOf(error) ?? String(error)}`], {
      cause: error,
    });
  }
}
