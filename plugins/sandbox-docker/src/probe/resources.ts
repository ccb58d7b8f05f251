import { expectThat, NotProven } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { type Attempts, lookInside, type Trial } from "./bench.js";

const limits: Trial = {
  shows: ["resources.memory", "resources.processes", "resources.disk"],
  async run(bench) {
    const { closed, listed, empty } = bench;
    const { memoryMb, processes: count, diskMb } = bench.limits;
    const memory: Attempts = { memory: { try: "memory", mib: memoryMb * 2 } };
    const fork: Attempts = { processes: { try: "processes", count } };
    const scratch = (folder: string): Attempts => ({ disk: { try: "disk", folder, mib: diskMb * 2 } });
    const free = await lookInside(closed, bench, { ...memory, ...fork, ...scratch(closed.workspace) });
    const kept = {
      ...(await lookInside(listed, bench, fork)),
      ...(await lookInside(listed, bench, memory)),
      ...(await lookInside(empty, bench, scratch(empty.home), { role: "agent" })),
    };
    const isProven = (id: string, how: string, more = true) =>
      free[id] === null || free[id] === undefined
        ? new NotProven("without the limit it can't be used either, so nothing is proven")
        : (kept[id] ?? null) === null && more
          ? how
          : new NotProven(
              `it was had in spite of the limit (${kept[id]})`,
              "see whether the engine may set limits: `docker info` lists what it can't",
            );
    return {
      "resources.memory": isProven(
        "memory",
        `${memoryMb * 2} MiB were had without a limit, and not with one of ${memoryMb}`,
      ),
      "resources.processes": isProven(
        "processes",
        `${count} more processes were started without a limit, and not with one of ${count}`,
      ),
      "resources.disk": isProven(
        "disk",
        `${diskMb * 2} MiB were written without a limit, and not with one of ${diskMb}`,
      ),
    };
  },
};

const processor: Trial = {
  shows: ["resources.cpu"],
  async run(bench) {
    const { closed, slow, limits } = bench;
    const had = async (sandbox: RemoteSandbox) => {
      const { cpu } = await lookInside(sandbox, bench, { cpu: { try: "cpu", ms: 1_000 } });
      return Number(cpu ?? Number.NaN) / 100;
    };
    const kept = await had(slow);
    // A busy host gives less than it has: it is asked again.
    let free = 0;
    for (let tries = 0; tries < 5 && !(free > limits.cpus * 2); tries += 1) free = await had(closed);
    const seen = `${free} cores were had without a limit, and ${kept} with one of ${limits.cpus}`;
    expectThat(kept < limits.cpus * 1.8 && free > limits.cpus * 2, seen);
    return { "resources.cpu": seen };
  },
};

export const resourceTrials: readonly Trial[] = [limits, processor];
