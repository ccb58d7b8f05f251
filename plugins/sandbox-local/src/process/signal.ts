/** @param target a process, or a group as a negative number. One that is already gone is fine. */
export function signal(target: number, name: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(target, name);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // EPERM: macOS answers so for a zombie.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
