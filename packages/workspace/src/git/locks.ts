import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../program/run-script.js";

/** Git never gives a branch a name that ends in `.lock`. Its hooks and what LFS keeps are the user's. */
const script = `cd "$1" 2>/dev/null || exit 0
find . -xdev \\( -name node_modules -o -path '*/.git/objects' -o -path '*/.git/hooks' -o -path '*/.git/lfs' \\) -prune \\
  -o -type f -path '*/.git/*.lock' -exec rm -f -- {} \\; -print 2>/dev/null`;
const maxCharacters = 2_000;

/**
 * Removes the locks of git in a workspace in which no command of git runs: those that a killed command left there would make
 * every later one fail.
 * @returns their paths in the workspace, the last of them where there are many.
 * @throws SandboxFailed; the signal's reason
 */
export async function removeGitLocks(sandbox: Sandbox, signal: AbortSignal): Promise<readonly string[]> {
  const { stdout } = await runScript(sandbox, script, [sandbox.workspace], { maxCharacters, signal });
  return stdout
    .split("\n")
    .filter((path) => path.startsWith("./"))
    .map((path) => path.slice(2));
}
