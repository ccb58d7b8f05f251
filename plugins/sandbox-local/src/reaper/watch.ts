import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { SandboxFailed } from "@ambit/core/plugin";
import { descriptorTable, inheritableDescriptors } from "../process/descriptors.js";
import { markerVariable } from "../process/marked-processes.js";

/**
 * Waits for the end of its input, which comes when the runner ends in any way. Then kills every process that carries
 * the runner's mark, until none has been found for a while, since a process that was just being started shows up late.
 * That is shorter after a runner that removed its folder at its end: all its sessions were closed. Finally it unmounts
 * the disks in the runner's folder.
 */
const script = `
read -r _
quiet=0
rounds=0
if [ -d "$3" ]; then looks=8; else looks=2; fi
while [ $quiet -lt $looks ] && [ $rounds -lt 200 ]; do
  rounds=$((rounds + 1))
  found=$(grep -lsz -e "^$1=$2/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline)
  if [ -z "$found" ]; then quiet=$((quiet + 1)); else quiet=0; fi
  for path in $found; do
    pid=\${path#/proc/}
    kill -9 "\${pid%/*}"
  done
  sleep 0.04
done
while read -r _ _ _ _ place _; do
  case $place in "$3"/*) umount -l "$place" ;; esac
done < /proc/self/mountinfo`;

/**
 * Starts the process that briefly outlives this one. Jails and unconfined processes end with the runner only from some
 * point of their start on: bubblewrap's child waits for bubblewrap, and asks to end with it afterwards.
 */
export async function watchOver(runnerKey: string, folder: string): Promise<void> {
  if (process.platform !== "linux") return; // There is no /proc to search.
  const devNull = openSync("/dev/null", "r+");
  try {
    const inheritable = inheritableDescriptors();
    const child = spawn(
      "/bin/sh",
      ["-c", script, "ambit-watch", markerVariable, runnerKey, await realpath(folder)],
      {
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
        // In a separate process group: a terminal's signals to the runner must not reach it.
        detached: true,
        stdio: [...descriptorTable(["pipe", "ignore", "ignore"] as const, inheritable, devNull)],
      },
    );
    await once(child, "spawn");
    const { stdin } = child;
    if (stdin === null) throw new SandboxFailed("The runner's monitor was started without its pipe");
    stdin.on("error", () => undefined); // If it is killed, the next start cleans up.
    child.unref();
    if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  } catch (error) {
    throw new SandboxFailed("The process that monitors the runner can't be started", { cause: error });
  } finally {
    closeSync(devNull);
  }
}
