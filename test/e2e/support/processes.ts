import { readdirSync, readFileSync } from "node:fs";

interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly environment: string;
}

/** All visible processes, except those that exit meanwhile. */
export function processes(): readonly ProcessInfo[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const pid = Number(name);
      const status = read(`/proc/${pid}/status`);
      const command = read(`/proc/${pid}/cmdline`);
      if (status === undefined || command === undefined || command === "") return [];
      const parent = Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0);
      return [
        {
          pid,
          parent,
          command: command.replaceAll("\0", " "),
          environment: read(`/proc/${pid}/environ`) ?? "",
        },
      ];
    });
}

/** All descendants of a process, except the runner's watch process, which ends after the runner. */
export function descendantsOf(pid: number): readonly ProcessInfo[] {
  const all = processes().filter(({ command }) => !command.includes("ambit-watch"));
  const below = (parent: number): readonly ProcessInfo[] =>
    all.filter((process) => process.parent === parent).flatMap((process) => [process, ...below(process.pid)]);
  return below(pid);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // ESRCH: there is no such process.
    return false;
  }
}

/** All processes with a text in their command line that only this test uses. */
export function running(marker: string): readonly ProcessInfo[] {
  return processes().filter(({ pid, command }) => pid !== process.pid && command.includes(marker));
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has exited, or belongs to another user: tests look for neither.
    return undefined;
  }
}
