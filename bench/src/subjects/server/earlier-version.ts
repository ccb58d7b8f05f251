import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const repository = fileURLToPath(new URL("../../../..", import.meta.url));

/**
 * The command of an earlier version: a worktree of its commit in the cache, installed and built once.
 * @param revision as git reads it: `HEAD~20`, a tag, a commit. @throws Error where it can't be built
 */
export async function entryOfEarlier(revision: string, progress: (text: string) => void): Promise<string> {
  const here = { cwd: repository };
  const { stdout } = await execute("git", ["rev-parse", "--verify", `${revision}^{commit}`], here);
  const commit = stdout.trim();
  const folder = join(repository, ".cache/bench-before", commit);
  const built = join(folder, "server/dist/bundle/ambit.js");
  if (!existsSync(built)) {
    progress(`building ${commit.slice(0, 8)}, the version before`);
    if (!existsSync(folder)) await execute("git", ["worktree", "add", "--detach", folder, commit], here);
    await execute("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder });
    await execute("npm", ["run", "build"], { cwd: folder });
  }
  return join(folder, "server/bin/ambit.mjs");
}
