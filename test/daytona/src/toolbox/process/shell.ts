import { readFileSync } from "node:fs";

const preferred = ["/usr/bin/zsh", "/bin/zsh", "/usr/bin/bash", "/bin/bash"];

/** The shell of commands and sessions: zsh before bash, not the user's (`apps/daemon/pkg/common/get_shell.go`). */
export function chooseShell(listed: string, own: string | undefined): string {
  const shells = listed
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .join("\n");
  return preferred.find((shell) => shells.includes(shell)) ?? own ?? "sh";
}

export function imageShell(): string {
  let listed = "";
  try {
    listed = readFileSync("/etc/shells", "utf8");
  } catch {
    // Without the file, the image has no shells.
  }
  return chooseShell(listed, process.env.SHELL);
}
