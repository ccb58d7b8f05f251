import { SandboxFailed } from "@ambit/core";
import type { Person } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../programs.js";

/** Git never gives a branch a name that ends in `.lock`. Its hooks and what LFS keeps are the user's. */
const lockRemoval = `cd "$1" 2>/dev/null || exit 0
find . -xdev \\( -name node_modules -o -path '*/.git/objects' -o -path '*/.git/hooks' -o -path '*/.git/lfs' \\) -prune \\
  -o -type f -path '*/.git/*.lock' -exec rm -f -- {} \\; -print 2>/dev/null`;

/**
 * Removes the locks of git in a workspace in which no command of git runs: those that a killed command left there would make
 * every later one fail.
 * @returns their paths in the workspace, the last of them where there are many.
 * @throws SandboxFailed; the signal's reason
 */
export async function removeGitLocks(sandbox: Sandbox, signal: AbortSignal): Promise<readonly string[]> {
  const { stdout } = await runScript(sandbox, lockRemoval, [sandbox.workspace], {
    maxCharacters: 2_000,
    signal,
  });
  return stdout
    .split("\n")
    .filter((path) => path.startsWith("./"))
    .map((path) => path.slice(2));
}

/** Git itself writes the user, so that what setup commands wrote there stays. A sandbox without git needs no user. */
const userNaming = `command -v git >/dev/null || exit 0
git config --global user.name "$1" && git config --global user.email "$2"`;

/** Names the user of git in the sandbox's home. @throws SandboxFailed; the signal's reason */
export async function setGitUser(
  sandbox: Sandbox,
  { name, email }: Person,
  signal: AbortSignal,
): Promise<void> {
  const env = { HOME: sandbox.home };
  const { code, stderr } = await runScript(sandbox, userNaming, [name, email], {
    env,
    maxCharacters: 400,
    signal,
  });
  if (code === 0) return;
  throw new SandboxFailed("workspace.gitUser couldn't be written to .gitconfig in the session's home.", {
    concerns: "session",
    cause: new Error(`exit code ${code}: ${stderr.trim()}`),
  });
}
