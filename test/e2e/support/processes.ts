import { readdirSync, readFileSync } from "node:fs";

interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly environment: string;
}

/** Every process that this one can see; one that leaves meanwhile is left out. */
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

/** All that a process has started, and what those have; but for the runner's watch, which ends after the runner. */
export function descendantsOf(pid: number): readonly ProcessInfo[] {
  const all = processes().filter(({ command }) => !command.includes("ambit-watch"));
  const below = (parent: number): readonly ProcessInfo[] =>
    all.filter((process) => process.parent === parent).flatMap((process) => [process, ...below(process.pid)]);
  return below(pid);
}

/** Processes whose command line contains a text that only this test uses, anywhere in the tree. */
export function running(marker: string): readonly ProcessInfo[] {
  return processes().filter(({ pid, command }) => pid !== process.pid && command.includes(marker));
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has left, or is another user's: neither is what a test looks for.
    return undefined;
  }
}
