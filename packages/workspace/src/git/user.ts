import { SandboxFailed } from "@ambit/core";
import type { Person } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { searchPathOf } from "../program/inside-program.js";
import { endOf } from "../program/streams.js";

/** Git keeps what setup commands wrote there. Without git, nobody commits. */
const script = `command -v git >/dev/null || exit 0
git config --global user.name "$1" && git config --global user.email "$2"`;
const maxCharacters = 400;

/** Names the user of git in the sandbox's home. @throws SandboxFailed; the signal's reason */
export async function setGitUser(
  sandbox: Sandbox,
  { name, email }: Person,
  signal: AbortSignal,
): Promise<void> {
  const child = await sandbox.spawn({
    argv: ["/bin/sh", "-c", script, "sh", name, email],
    env: { PATH: searchPathOf(sandbox), HOME: sandbox.home, LC_ALL: "C" },
    role: "agent",
    signal,
  });
  const [printed, { code }] = await Promise.all([
    endOf(child.stderr, maxCharacters),
    child.exit,
    endOf(child.stdout, 0),
    child.stdin.close().catch(() => {}),
  ]);
  signal.throwIfAborted();
  if (code === 0) return;
  throw new SandboxFailed("workspace.gitUser couldn't be written to .gitconfig in the session's home.", {
    concerns: "session",
    cause: new Error(`exit code ${code}: ${printed.trim()}`),
  });
}
