import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expectThat, openBoundary, runIn, shell, type Trial } from "./trial.js";

const bytes = 64 * 1024 * 1024;
/** `tail` keeps all of it in memory before it prints the first byte. */
const fill = shell(`head -c ${bytes} /dev/zero | tail -c ${bytes} | wc -c; echo ran`);

const memory: Trial = {
  shows: ["resources.memory"],
  run: async (bench) => {
    const [limited, free] = await Promise.all([bench.open({ resources: { memoryMb: 32 } }), bench.open(openBoundary)]);
    const control = await runIn(free, fill);
    expectThat(control.stdout.trim() === `${bytes}\nran`, "the control couldn't have this memory either, so nothing is shown");
    const { stdout } = await runIn(limited, fill);
    expectThat(Number.parseInt(stdout, 10) !== bytes, "64 MiB were had under a limit of 32 MiB");
    return { "resources.memory": "64 MiB were had without a limit, and ended the process under one of 32 MiB" };
  },
};

const forks = 60;
const fork = shell(`i=0; while [ $i -lt ${forks} ]; do sleep 30 & echo started; i=$((i + 1)); done`);

const processes: Trial = {
  shows: ["resources.processes"],
  run: async (bench) => {
    const [limited, free] = await Promise.all([bench.open({ resources: { processes: 30 } }), bench.open(openBoundary)]);
    const count = ({ stdout }: { stdout: string }) => stdout.split("started").length - 1;
    const control = count(await runIn(free, fork));
    expectThat(control === forks, `the control started ${control} of ${forks} processes, so nothing is shown`);
    const started = count(await runIn(limited, fork));
    expectThat(started > 0 && started < 30, `${started} processes were started under a limit of 30`);
    return { "resources.processes": `${forks} processes were started without a limit, ${started} under one of 30` };
  },
};

/** Work that needs more than one period's share. */
const burn = shell("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo ran");

const cpu: Trial = {
  shows: ["resources.cpu"],
  run: async (bench) => {
    const [limited, wide] = await Promise.all([
      bench.open({ resources: { cpus: 0.25 } }),
      bench.open({ resources: { cpus: 1024 } }),
    ]);
    for (const sandbox of [limited, wide]) {
      expectThat((await runIn(sandbox, burn)).stdout === "ran\n", "the work didn't run");
    }
    expectThat((await throttled(wide.groupPaths)) === 0, "the control was held back too, so nothing is shown");
    const held = await throttled(limited.groupPaths);
    expectThat(held > 0, "the kernel never held back a process that wanted more than its share");
    return { "resources.cpu": `the kernel held the work back ${held} times under a limit of 0.25 cores, and never under a wide one` };
  },
};

/** How often the kernel held these groups back (`nr_throttled` of `cpu.stat`). */
async function throttled(groups: readonly string[]): Promise<number> {
  const stats = await Promise.all(groups.map((path) => readFile(join(path, "cpu.stat"), "latin1").catch(() => "")));
  return Math.max(0, ...stats.map((text) => Number(/nr_throttled (\d+)/.exec(text)?.[1] ?? 0)));
}

export const resourceTrials: readonly Trial[] = [memory, processes, cpu];
