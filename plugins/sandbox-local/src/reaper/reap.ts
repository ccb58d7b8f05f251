import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { readdir, readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { removeGroups } from "../cgroup/session-groups.js";
import {
  claimRunnerFolder,
  continuedMark,
  deadForMs,
  deadRunners,
  groupsRecord,
  type RunnerFolder,
} from "../folders/runner-folder.js";
import type { Trash } from "../folders/trash.js";
import { killMarked, markerVariable, markOf } from "../process/host-processes.js";
import { descriptorTable, inheritableDescriptors } from "../process/start-child.js";

const maxTimerMs = 2_147_483_647;

/**
 * Cleans up what dead runners left in the data folder, and creates this runner's folder in it.
 * Its leftovers are removed as soon as it is killed.
 *
 * @param takeoverMs how long files of a dead runner's named sessions wait for one that goes on with them.
 * @throws SandboxFailed when the folder can't be used.
 */
export async function openRunner(dataFolder: string, takeoverMs: number): Promise<RunnerFolder> {
  try {
    const runner = await claimRunnerFolder(dataFolder);
    await watchOver(runner.key, runner.path);
    // Before this start adds to it.
    await runner.trash.retry();
    await reapUntilEmpty(dataFolder, runner.trash, takeoverMs);
    return runner;
  } catch (error) {
    if (error instanceof SandboxFailed) throw error;
    const why = codeOf(error) ?? messageOf(error);
    throw new SandboxFailed(`the data folder ${dataFolder} can't be used (${why})`, { cause: error });
  }
}

/** Now, and again when what still waits has waited long enough. */
async function reapUntilEmpty(dataFolder: string, trash: Trash, takeoverMs: number): Promise<void> {
  const { waiting } = await reap(dataFolder, trash, takeoverMs);
  if (waiting === 0) return;
  const again = () =>
    void reapUntilEmpty(dataFolder, trash, takeoverMs).catch((error: unknown) =>
      trash.note(dataFolder, error),
    );
  setTimeout(again, Math.min(takeoverMs, maxTimerMs)).unref();
}

interface ReapedLeftovers {
  readonly runners: number;
  readonly processes: number;
  /** Sessions whose files wait for the next runner that has them. */
  readonly waiting: number;
}

/**
 * Ends and removes what dead runners left in the data folder, never what belongs to a live one. What can't be ended or
 * removed is recorded and left; it doesn't fail this start.
 *
 * @param takeoverMs how long the files of named sessions wait for a runner that goes on with them.
 */
export async function reap(dataFolder: string, trash: Trash, takeoverMs: number): Promise<ReapedLeftovers> {
  let [processes, waiting] = [0, 0];
  const dead = await deadRunners(dataFolder);
  for (const { key, path } of dead) {
    try {
      processes += await killMarked(markOf(key));
      const sessions = await sessionsIn(path);
      for (const session of sessions) await removeGroups(await recordedGroups(session));
      const continued = sessions.filter((session) => existsSync(join(session, continuedMark)));
      if (continued.length > 0 && (await deadForMs(path)) < takeoverMs) {
        waiting += continued.length;
        for (const session of sessions) if (!continued.includes(session)) await trash.discard(session, false);
      } else await trash.discard(path, false);
    } catch (error) {
      trash.note(path, error);
    }
  }
  return { runners: dead.length, processes, waiting };
}

/** Ends what is left of a dead runner's session besides its files. */
export async function endLeftover(runnerKey: string, session: string, id: string): Promise<void> {
  await killMarked(markOf(runnerKey, id));
  await removeGroups(await recordedGroups(session));
}

async function sessionsIn(path: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
  } catch (error) {
    // Another start is reaping it at the same time.
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** Only the runner can write into a session's own folder, so the record can be trusted. */
async function recordedGroups(session: string): Promise<readonly string[]> {
  try {
    return z.array(z.string()).parse(JSON.parse(await readFile(join(session, groupsRecord), "utf8")));
  } catch (error) {
    // No limits, or the runner died while it wrote, before it made the first group.
    if (codeOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}

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
async function watchOver(runnerKey: string, folder: string): Promise<void> {
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
