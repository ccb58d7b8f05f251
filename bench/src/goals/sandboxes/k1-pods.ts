import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Goal, GoalMeasurement } from "../../goal.js";
import { interleaved, median, mediansOf, rotating, short, timed } from "../../measure.js";
import { cluster, openPods, type PodBackend, type Pods, podOf } from "../../subjects/sandboxes/pods.js";
import {
  all,
  cat,
  echoes,
  giveAll,
  hello,
  lines,
  readBytes,
  reading,
  spawned,
} from "../../subjects/sandboxes/streams.js";
import { firstWords } from "./k1-first-word.js";

const MB = 2 ** 20;
const streamed = 64 * MB;
const rounds = 200;
const together = 20;
/** For the next pod to be prepared: it has its own network namespace, users and checks before it counts. */
const prepareMs = 4_000;

/** The cost of a sandbox in a pod beside a bare pod with Kubernetes' own client, and its streams beside a bare exec. */
export const pods: Goal = {
  id: "K1",
  title: "a sandbox in a pod: opened, closed, and its streams ÷ a bare pod's",
  goal: "open ≤ 1.2, prepared ≤ 60 ms, streams ≤ 1.25, echo ≤ 1.5 of a bare pod; closed ≤ 2 s; first word ≤ 1.2 s, prepared ≤ 0.5 s",
  needs: [cluster],
  async run({ pairs }) {
    await using on = await openPods();
    await using backend = await on.backend(0);
    const measured = [
      ...(await openings(on, backend, pairs(8))),
      ...(await prepared(on, pairs(6))),
      ...(await firstWords(on, pairs(6), prepareMs)),
    ];
    const sandbox = await backend.open();
    try {
      const few = pairs(6);
      const pod = podOf(sandbox);
      const against = async (
        what: string,
        atMost: number,
        subject: () => Promise<number>,
        floor: () => Promise<number>,
      ): Promise<GoalMeasurement> => {
        const found = await interleaved(subject, floor, { pairs: few });
        const note = mediansOf(found, "ms");
        return { what: `${what} ÷ a bare exec`, unit: "×", values: found.ratios, limit: { atMost }, note };
      };
      measured.push(
        await against(
          "first output in a running pod",
          1.25,
          () => timed(async () => all((await spawned(sandbox, hello)).output)),
          () => timed(async () => all((await on.exec(pod, hello)).output)),
        ),
        await against(
          `an echo of 100 bytes (${rounds} in sequence)`,
          1.5,
          async () => echoes(await spawned(sandbox, cat), rounds),
          async () => echoes(await on.exec(pod, cat), rounds),
        ),
        await against(
          "64 MB out",
          1.25,
          () => timed(async () => all((await spawned(sandbox, lines(streamed))).output)),
          () => timed(async () => all((await on.exec(pod, lines(streamed))).output)),
        ),
        await against(
          "64 MB in",
          1.25,
          () => timed(async () => giveAll(await spawned(sandbox, reading(streamed)), streamed)),
          () => timed(async () => giveAll(await on.exec(pod, reading(streamed)), streamed)),
        ),
      );
    } finally {
      await sandbox.close();
    }
    measured.push(...(await manyAtOnce(backend)));
    return measured;
  },
};

/** New pods, until a command's output, and their ends. */
async function openings(on: Pods, backend: PodBackend, count: number): Promise<readonly GoalMeasurement[]> {
  const closings: number[] = [];
  const bare = async (hasVolume: boolean) => {
    const begun = performance.now();
    const pod = await on.createBare(hasVolume);
    await on.execAtOnce(pod, hello);
    const ms = performance.now() - begun;
    await on.removeBare(pod);
    return ms;
  };
  const sides = {
    ours: async () => {
      const begun = performance.now();
      const sandbox = await backend.open();
      await all((await spawned(sandbox, hello)).output);
      const ms = performance.now() - begun;
      closings.push(await timed(() => sandbox.close()));
      return ms;
    },
    "with a volume": () => bare(true),
    "without volumes": () => bare(false),
  };
  const names = ["ours", "with a volume", "without volumes"] as const;
  const costs = await rotating(names, (side) => sides[side](), { rounds: count, warmUp: 1 });
  const ours = costs.get("ours") ?? [];
  const against = (floor: "with a volume" | "without volumes") => {
    const theirs = costs.get(floor) ?? [];
    return {
      what: `open and first output, in a new pod ÷ a bare pod's ${floor}`,
      unit: "×" as const,
      values: ours.map((cost, round) => cost / (theirs[round] ?? Number.NaN)),
      note: `${short(median(ours))} / ${short(median(theirs))} ms`,
    };
  };
  return [
    { ...against("with a volume"), limit: { atMost: 1.2 } },
    { ...against("without volumes"), limit: { atMost: 1.2 } },
    { what: "closed, and the pod is gone", unit: "ms", values: closings.slice(1), limit: { atMost: 2_000 } },
  ];
}

async function prepared(on: Pods, count: number): Promise<readonly GoalMeasurement[]> {
  await using ahead = await on.backend(1);
  const values: number[] = [];
  for (let time = -1; time < count; time += 1) {
    const begun = performance.now();
    const sandbox = await ahead.open();
    await all((await spawned(sandbox, hello)).output);
    if (time >= 0) values.push(performance.now() - begun);
    await sandbox.close();
    await pause(prepareMs);
  }
  const what = "open and first output, in a prepared pod";
  return [{ what, unit: "ms", values, limit: { atMost: 60 } }];
}

async function manyAtOnce(backend: PodBackend): Promise<readonly GoalMeasurement[]> {
  const before = heldBytes();
  const begun = performance.now();
  const opened = await Promise.allSettled(
    Array.from({ length: together }, async () => {
      const sandbox = await backend.open();
      await readBytes((await spawned(sandbox, hello)).output, 1);
      return sandbox;
    }),
  );
  const took = performance.now() - begun;
  const up = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const memory = (heldBytes() - before) / Math.max(1, up.length) / MB;
  await Promise.all(up.map((sandbox) => sandbox.close()));
  return [
    {
      what: `${together} pods opened at once, a program run in each: failures`,
      unit: "count",
      values: [together - up.length],
      limit: { atMost: 0 },
      note: `all up and run after ${short(took)} ms`,
    },
    { what: "the runner's memory for each of them", unit: "MiB", values: [memory] },
  ];
}

/** What JavaScript holds, without garbage. */
function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
