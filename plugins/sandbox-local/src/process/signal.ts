/** @param target a process, or a group as a negative number. One that is gone is what was wanted. */
export function signal(target: number, name: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(target, name);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // EPERM: on macOS a zombie's answer.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
