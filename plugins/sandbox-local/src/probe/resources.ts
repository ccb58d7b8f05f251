import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expectThat, runIn, shell, type Trial, unlimitedBoundary } from "./trial.js";

const bytes = 48 * 1024 * 1024;
/** `tail` keeps all of it in memory before it prints the first byte. */
const fill = shell(`head -c ${bytes} /dev/zero | tail -c ${bytes} | wc -c; echo ran`);

const memory: Trial = {
  shows: ["resources.memory"],
  run: async (bench) => {
    const [limited, free] = await Promise.all([
      bench.open({ resources: { memoryMb: 24 } }),
      bench.shared(unlimitedBoundary),
    ]);
    const control = await runIn(free, fill);
    expectThat(
      control.stdout.trim() === `${bytes}\nran`,
      "the control couldn't use this memory either, so nothing is proven",
    );
    const { stdout } = await runIn(limited, fill);
    expectThat(Number.parseInt(stdout, 10) !== bytes, "48 MiB could be used under a limit of 24 MiB");
    return {
      "resources.memory": "48 MiB could be used without a limit, and ended the process under one of 24 MiB",
    };
  },
};

const forks = 40;
const fork = shell(`i=0; while [ $i -lt ${forks} ]; do sleep 30 & echo started; i=$((i + 1)); done`);

const processes: Trial = {
  shows: ["resources.processes"],
  run: async (bench) => {
    const [limited, free] = await Promise.all([
      bench.open({ resources: { processes: 30 } }),
      bench.shared(unlimitedBoundary),
    ]);
    const count = ({ stdout }: { stdout: string }) => stdout.split("started").length - 1;
    const control = count(await runIn(free, fork));
    expectThat(
      control === forks,
      `the control started ${control} of ${forks} processes, so nothing is proven`,
    );
    const started = count(await runIn(limited, fork));
    expectThat(started > 0 && started < 30, `${started} processes were started under a limit of 30`);
    return {
      "resources.processes": `${forks} processes were started without a limit, ${started} under one of 30`,
    };
  },
};

/** Uses a whole core until it is ended. */
const burn = shell("while :; do :; done");

export const cpuTrial: Trial = {
  shows: ["resources.cpu"],
  run: async (bench) => {
    const [limited, wide] = await Promise.all([
      bench.open({ resources: { cpus: 0.25 } }),
      bench.open({ resources: { cpus: 1024 } }),
    ]);
    const environment = { env: { PATH: "/usr/bin:/bin" }, signal: bench.signal };
    const burning = await Promise.all(
      [limited, wide].map((box) => box.spawn({ argv: burn, ...environment })),
    );
    let held = 0;
    for (let wait = 0; held === 0 && wait < 5_000 && !bench.signal.aborted; wait += 10) {
      await delay(10);
      held = await throttled(limited.groupPaths);
    }
    const control = await throttled(wide.groupPaths);
    await Promise.all(burning.map((started) => started.kill()));
    expectThat(control === 0, "the control was held back too, so nothing is proven");
    expectThat(held > 0, "the kernel never held back a process that wanted more than its share");
    return {
      "resources.cpu":
        "the kernel held back a process that wanted a whole core under a limit of 0.25, and not one under a wide limit",
    };
  },
};

/** How often the kernel throttled these groups (`nr_throttled` of `cpu.stat`). */
async function throttled(groups: readonly string[]): Promise<number> {
  const stats = await Promise.all(
    groups.map((path) => readFile(join(path, "cpu.stat"), "latin1").catch(() => "")),
  );
  return Math.max(0, ...stats.map((text) => Number(/nr_throttled (\d+)/.exec(text)?.[1] ?? 0)));
}

const diskMb = 8;
const tooMuchMb = 12;
/** How many MiB fit into a workspace. */
const occupy = shell(`head -c $((${tooMuchMb} << 20)) /dev/zero > fill; stat -c %s fill; rm fill; echo ran`);

const disk: Trial = {
  shows: ["resources.disk"],
  run: async (bench) => {
    const [limited, free] = await Promise.all([
      bench.open({ resources: { diskMb } }),
      bench.shared(unlimitedBoundary),
    ]);
    const written = async (sandbox: typeof free) => {
      const { stdout } = await runIn(sandbox, occupy);
      expectThat(stdout.endsWith("ran\n"), "the attempt to write didn't come to its end");
      return Number.parseInt(stdout, 10);
    };
    const all = tooMuchMb * 1024 * 1024;
    expectThat((await written(free)) === all, "the control couldn't write this much, so nothing is proven");
    const bytes = await written(limited);
    expectThat(bytes > 0 && bytes <= diskMb * 1024 * 1024, `${bytes} bytes were written under the limit`);
    return {
      "resources.disk": `${tooMuchMb} MiB were written without a limit, and ${bytes >> 20} under one of ${diskMb} MiB, on the session's own file system`,
    };
  },
};

export const resourceTrials: readonly Trial[] = [memory, processes, cpuTrial, disk];
