import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import type { Command, Exit, Process } from "@ambit/core/plugin";
import type { HostUser } from "./unprivileged-user.js";

/**
 * A plain process, started by a shell that keeps running: like the launcher of a careless jail, the shell has the
 * runner's whole environment, and can be inspected.
 */
export async function spawnBare(command: Command, user: HostUser | undefined): Promise<Process> {
  const child = spawn("/bin/sh", ["-c", '"$@"; exit $?', "launcher", ...command.argv], {
    cwd: command.cwd,
    env: command.env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    ...(user ?? {}),
  });
  await once(child, "spawn");
  const group = child.pid ?? 0;
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  const end = (name: "SIGTERM" | "SIGKILL") => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    try {
      process.kill(-group, name);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  };
  const onAbort = () => end("SIGKILL");
  command.signal?.addEventListener("abort", onAbort, { once: true });
  if (command.signal?.aborted) onAbort();
  const exit = exited.finally(() => command.signal?.removeEventListener("abort", onAbort));
  child.stdin.on("error", () => undefined); // The process may end before it has read everything.
  return {
    stdin: Writable.toWeb(child.stdin),
    stdout: Readable.toWeb(child.stdout),
    stderr: Readable.toWeb(child.stderr),
    evidence: {},
    exit,
    kill: async (name = "SIGKILL") => {
      end(name);
      await exit;
    },
  };
}
