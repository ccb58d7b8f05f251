import { execFile } from "node:child_process";
import { chmod, copyFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

/** The host's shell; what runs it in a jail is `inside.shell`. */
export const hostShell = "/bin/sh";

/**
 * Copies the host's shell so that everybody may run the copy and nobody may read it. The kernel then keeps every
 * process of the same user out of it (`/proc/<pid>/mem`, ptrace, pidfd_getfd), for as long as it runs: execve(2) makes
 * a program that its user can't read not dumpable. A jail's first process is such a copy; its payload is of the same
 * user, and could otherwise make it do anything.
 *
 * @throws SandboxFailed where programs can't be started from this folder.
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
