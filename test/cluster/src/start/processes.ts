import { execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ProgramName } from "./configuration.js";
import { inside } from "./namespaces.js";

const execute = promisify(execFile);

const pidFile = (folder: string, name: ProgramName) => join(folder, "run", `${name}.pid`);
const logFile = (folder: string, name: ProgramName) => join(folder, "log", `${name}.log`);

/** Starts a program in the cluster's namespaces. It outlives this process, and ends with the namespaces. */
export function startProgram(
  { folder, pid, programs }: { readonly folder: string; readonly pid: number; readonly programs: string },
  name: ProgramName,
  command: readonly string[],
): void {
  const log = openSync(logFile(folder, name), "a");
  // Its id in the namespace is what it can be killed by: this host's is that of a process in between.
  const script = 'echo $$ > "$0" && exec "$@"';
  const argv = [...inside(pid), "/bin/sh", "-c", script, pidFile(folder, name), ...command];
  const env = { PATH: `${programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`, GOGC: "200" };
  const child = spawn("nsenter", argv, { detached: true, cwd: folder, env, stdio: ["ignore", log, log] });
  // It shows in what the program doesn't answer.
  child.on("error", () => undefined);
  child.unref();
  closeSync(log);
}

/** Ends a program with a signal, and waits until it has ended. Does nothing to one that has. */
export async function endProgram(
  { folder, pid }: { readonly folder: string; readonly pid: number },
  name: ProgramName,
  signal: "KILL" | "TERM" = "KILL",
): Promise<void> {
  const file = pidFile(folder, name);
  const own = (await readFile(file, "utf8").catch(() => "")).trim();
  if (own === "") return;
  const script = 'kill -s "$1" "$0" 2>/dev/null; while kill -0 "$0" 2>/dev/null; do sleep 0.02; done';
  await execute("nsenter", [...inside(pid), "/bin/sh", "-c", script, own, signal]);
  await rm(file, { force: true });
}

/** Suspends a program, or lets it continue: it is there and doesn't answer. */
export async function signalProgram(
  { folder, pid }: { readonly folder: string; readonly pid: number },
  name: ProgramName,
  signal: "STOP" | "CONT",
): Promise<void> {
  const own = (await readFile(pidFile(folder, name), "utf8")).trim();
  await execute("nsenter", [...inside(pid), "/bin/sh", "-c", 'kill -s "$1" "$0"', own, signal]);
}

/** The end of a program's log. */
export async function logOf(folder: string, name: ProgramName): Promise<string> {
  const text = await readFile(logFile(folder, name), "utf8").catch(() => "");
  return text.trim().split("\n").slice(-5).join("\n");
}
