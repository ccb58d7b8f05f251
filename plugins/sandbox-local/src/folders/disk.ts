import { execFile } from "node:child_process";
import { chmod, mkdir, open, readFile, realpath, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

/** One mount as a process sees it. */
export interface Mount {
  /** Major and minor number of the file system. */
  readonly device: string;
  /** The folder or file of that file system which is mounted. */
  readonly root: string;
  readonly path: string;
  readonly isReadOnly: boolean;
}

/** Reads the text of a process's `mountinfo` in `/proc`, in latin1: paths are bytes. A later mount of a path covers earlier ones. */
export function parseMounts(text: string): readonly Mount[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [, , device = "", root = "", path = "", options = ""] = line.split(" ");
      const isReadOnly = options.split(",").includes("ro");
      return { device, root: decoded(root), path: decoded(path), isReadOnly };
    });
}

/** The kernel writes blanks and backslashes in paths as octal numbers. */
function decoded(path: string): string {
  const bytes = path.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, "latin1").toString();
}

const execute = promisify(execFile);
const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
/** In milliseconds. Each command takes a few. */
const commandTimeoutMs = 20_000;

/** In a session's folder: where the file system with a size is mounted. */
export const diskMount = "disk";
/** In a session's folder: the file that holds it. */
export const diskImage = "disk.img";

/** A file system for one session. */
interface SessionDisk {
  readonly path: string;
  /** Its size as the kernel reads it back, which is less than the limit by the file system's metadata. */
  readonly bytes: number;
}

/**
 * Makes a file system of `sizeMb` MiB in a sparse file and mounts it in the session's folder. Needs root, a loop device
 * and mkfs.ext4. It occupies as much of the host's disk as is written to it; removed files free their space.
 *
 * @throws SandboxFailed when this host can't do that; nothing of it remains then.
 */
export async function makeSessionDisk(session: string, sizeMb: number): Promise<SessionDisk> {
  if (process.getuid?.() !== 0) throw refused("only root can mount a file system");
  const file = join(session, diskImage);
  try {
    const handle = await open(file, "wx", 0o600);
    await handle.truncate(sizeMb * 1024 * 1024).finally(() => handle.close());
    // No reserve for root and no journal: nothing outlives the session.
    const features = ["-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard"];
    await run("mkfs.ext4", ["-q", "-F", ...features, file]);
    return await mounted(session);
  } catch (error) {
    await unmountBelow(session);
    await rm(join(session, diskMount), { recursive: true, force: true });
    await rm(file, { force: true });
    throw refused(reasonOf(error), error);
  }
}

/** Mounts the file system of a dead runner's session, which may need a repair. @throws SandboxFailed */
export async function mountSessionDisk(session: string): Promise<SessionDisk> {
  try {
    // Ends with 1 where it has repaired something.
    await run("e2fsck", ["-p", join(session, diskImage)]).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === 1)) throw error;
    });
    return await mounted(session);
  } catch (error) {
    throw refused(reasonOf(error), error);
  }
}

async function mounted(session: string): Promise<SessionDisk> {
  const path = join(session, diskMount);
  await mkdir(path);
  const options = "loop,nosuid,nodev,noatime,discard";
  await run("mount", ["-t", "ext4", "-o", options, join(session, diskImage), path]);
  // Passable for the session's user, like the folder above.
  await chmod(path, 0o711);
  const { blocks, bsize } = await statfs(path);
  return { path, bytes: blocks * bsize };
}

/** Unmounts the disk of a session, or those of all sessions in a runner's folder. Rejects with what stays mounted. */
export async function unmountBelow(folder: string): Promise<void> {
  if (process.platform !== "linux") return;
  for (const path of await mountsBelow(folder)) {
    // A process that can't be killed yet may hold it: a lazy unmount detaches it now and frees it when that process
    // ends.
    await run("umount", [path]).catch(() => run("umount", ["--lazy", path]));
  }
}

async function mountsBelow(folder: string): Promise<readonly string[]> {
  let real: string;
  try {
    real = await realpath(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  return parseMounts(await readFile("/proc/self/mountinfo", "latin1"))
    .map(({ path }) => path)
    .filter((path) => path.startsWith(`${real}/`))
    .reverse();
}

async function run(program: string, argv: readonly string[]): Promise<void> {
  await execute(program, argv, { env: environment, cwd: "/", timeout: commandTimeoutMs });
}

/** The program's own message, without the paths in it, which name the runner. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "ENOENT") return `${String(Reflect.get(error, "path"))} is missing`;
  const words = "stderr" in error ? String(error.stderr) : error.message;
  return (words.trim().split("\n")[0] ?? "").replaceAll(/(?<![\w/])\/[\w./-]+/g, "…").slice(0, 200);
}

function refused(reason: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(`The disk limit can't be set (${reason})`, { cause });
}
