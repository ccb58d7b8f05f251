import { readFileSync } from "node:fs";

const preferred = ["/usr/bin/zsh", "/bin/zsh", "/usr/bin/bash", "/bin/bash"];

/** The shell of commands and sessions: zsh before bash, whatever the user's own (`apps/daemon/pkg/common/get_shell.go`). */
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
    // An image without the file has none of them.
  }
  return chooseShell(listed, process.env.SHELL);
}
