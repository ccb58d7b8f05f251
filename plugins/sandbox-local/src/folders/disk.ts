import { execFile } from "node:child_process";
import { chmod, mkdir, open, readFile, realpath, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

const execute = promisify(execFile);
const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
/** In ms. Each takes a few. */
const longestCommandMs = 20_000;

/** In a session's folder: where the file system with a size is mounted. */
export const diskMount = "disk";
const image = "disk.img";

/** A file system of a session's own. */
export interface SessionDisk {
  readonly path: string;
  /** Its size as the kernel reads it back. Less than the limit: the file system's own records are part of it. */
  readonly bytes: number;
}

/**
 * Makes a file system of `sizeMb` MiB in a sparse file and mounts it in the session's folder. Takes root, a loop device
 * and mkfs.ext4. What it occupies on the host's disk is what is written there; removed files give it back.
 *
 * @throws SandboxFailed when this host can't; nothing of it remains then.
 */
export async function makeSessionDisk(session: string, sizeMb: number): Promise<SessionDisk> {
  if (process.getuid?.() !== 0) throw refused("only root can mount a file system");
  const [file, path] = [join(session, image), join(session, diskMount)];
  try {
    const handle = await open(file, "wx", 0o600);
    await handle.truncate(sizeMb * 1024 * 1024).finally(() => handle.close());
    await mkdir(path);
    // Nothing is kept for root, and nothing outlives the session: no reserve, no journal.
    const features = ["-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard"];
    await run("mkfs.ext4", ["-q", "-F", ...features, file]);
    await run("mount", ["-t", "ext4", "-o", "loop,nosuid,nodev,noatime,discard", file, path]);
    // Passable for the session's user, like the folder above.
    await chmod(path, 0o711);
    const { blocks, bsize } = await statfs(path);
    return { path, bytes: blocks * bsize };
  } catch (error) {
    await unmountBelow(session);
    await rm(path, { recursive: true, force: true });
    await rm(file, { force: true });
    throw refused(reasonOf(error), error);
  }
}

/** Unmounts the disk of a session, or those of all sessions in a runner's folder. Rejects with what stays mounted. */
export async function unmountBelow(folder: string): Promise<void> {
  if (process.platform !== "linux") return;
  for (const path of await mountsBelow(folder)) {
    // A process that can't be ended yet may hold it: then it is out of the way at once, and gone with that process.
    await run("umount", [path]).catch(() => run("umount", ["--lazy", path]));
  }
}

/** Paths in the kernel's list have their blanks and backslashes as octal numbers. */
async function mountsBelow(folder: string): Promise<readonly string[]> {
  let real: string;
  try {
    real = await realpath(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  const lines = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
  return lines
    .map((line) => line.split(" ")[4] ?? "")
    .map((path) => path.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((path) => path.startsWith(`${real}/`))
    .reverse();
}

async function run(program: string, argv: readonly string[]): Promise<void> {
  await execute(program, argv, { env: environment, cwd: "/", timeout: longestCommandMs });
}

/** The program's own words, without the paths in them, which name the runner. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "ENOENT") return `${String(Reflect.get(error, "path"))} is missing`;
  const words = "stderr" in error ? String(error.stderr) : error.message;
  return (words.trim().split("\n")[0] ?? "").replaceAll(/(?<![\w/])\/[\w./-]+/g, "…").slice(0, 200);
}

function refused(reason: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(`The disk limit can't be set (${reason})`, { cause });
}
