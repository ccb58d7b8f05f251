import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expectThat, type LocalTrial, shell } from "./trial.js";

/** Little, so that other load doesn't keep a process below it. */
const cpus = 0.1;

/** Uses a whole core until it is ended. */
const burn = shell("while :; do :; done");

export const cpuTrial: LocalTrial = {
  shows: ["resources.cpu"],
  measures: true,
  run: async (bench) => {
    const [limited, wide] = await Promise.all([
      bench.open({ resources: { cpus } }),
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
      "resources.cpu": `the kernel held back a process that wanted a whole core under a limit of ${cpus}, and not one under a wide limit`,
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
