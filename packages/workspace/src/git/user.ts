import { SandboxFailed } from "@ambit/core";
import type { Person } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../program/run-script.js";

/** By git itself, which keeps what setup commands wrote there. A sandbox without git needs no user. */
const script = `command -v git >/dev/null || exit 0
git config --global user.name "$1" && git config --global user.email "$2"`;
const maxCharacters = 400;

/** Names the user of git in the sandbox's home. @throws SandboxFailed; the signal's reason */
export async function setGitUser(
  sandbox: Sandbox,
  { name, email }: Person,
  signal: AbortSignal,
): Promise<void> {
  const env = { HOME: sandbox.home };
  const { code, stderr } = await runScript(sandbox, script, [name, email], { env, maxCharacters, signal });
  if (code === 0) return;
  throw new SandboxFailed("workspace.gitUser couldn't be written to .gitconfig in the session's home.", {
    concerns: "session",
    cause: new Error(`exit code ${code}: ${stderr.trim()}`),
  });
}
