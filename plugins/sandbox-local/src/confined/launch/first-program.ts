import { execFile } from "node:child_process";
import { chmod, copyFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

/** The host's shell; in a jail it runs as `inside.shell`. */
export const hostShell = "/bin/sh";

/**
 * Copies the host's shell so that every user may execute the copy and none may read it. As long as it runs, the kernel
 * then keeps every process of the same user out of it (`/proc/<pid>/mem`, ptrace, pidfd_getfd): execve(2) makes a
 * program that its user can't read not dumpable. A jail's first process is such a copy; its payload has the same user,
 * and could otherwise take control of it.
 *
 * @throws SandboxFailed when programs can't be executed from this folder.
 */
export async function makeFirstProgram(folder: string): Promise<string> {
  const copy = join(folder, "sh");
  await copyFile(await realpath(hostShell), copy);
  await chmod(copy, 0o111);
  try {
    await promisify(execFile)(copy, ["-c", ":"], { cwd: "/", env: {} });
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
    throw new SandboxFailed(
      "Programs can't be started from sandbox-local's dataFolder: set it to a folder of a file system that is mounted without noexec",
      { cause: error },
    );
  }
  return copy;
}
