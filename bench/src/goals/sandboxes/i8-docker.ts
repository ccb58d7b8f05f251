import { setTimeout as pause } from "node:timers/promises";
import { relayed } from "../../floors/relay.js";
import type { Goal, GoalMeasurement } from "../../goal.js";
import { interleaved, mediansOf, type Side, short, timed } from "../../measure.js";
import {
  type Containers,
  dockerEngine,
  openContainers,
  openEngine,
} from "../../subjects/sandboxes/docker.js";
import { type Argv, all, cat, echoes, hello, lines, spawned } from "../../subjects/sandboxes/streams.js";

const MB = 2 ** 20;
const together = 50;
const rounds = 200;
const atMost = 1.5;

/** The cost of a sandbox in a container, and its streams compared with `docker exec` in the same container. */
export const docker: Goal = {
  id: "I8",
  title: "a sandbox in a container (runc): opened, and its streams ÷ docker exec",
  goal: "open ≤ 350 ms; ≤ 1.5 of docker exec",
  needs: [dockerEngine],
  async run({ pairs }) {
    await using engine = await openEngine();
    await using containers = await openContainers(engine, 0);
    await using ahead = await openContainers(engine, 1);
    const sandbox = await containers.open();
    try {
      const few = pairs(10);
      const against = async (
        what: string,
        subject: Side,
        floor: Side,
        isGoal = true,
      ): Promise<GoalMeasurement> => {
        const measured = await interleaved(subject, floor, { pairs: few });
        const note = mediansOf(measured, "ms");
        const limit = isGoal ? { limit: { atMost } } : {};
        return { what: `${what} ÷ docker exec`, unit: "×", values: measured.ratios, ...limit, note };
      };
      const echoesOverExec = (argv: Argv) => async () => echoes(containers.exec(sandbox, argv), rounds);
      const inside = (argv: Argv) => () => timed(async () => all((await spawned(sandbox, argv)).output));
      const overExec = (argv: Argv) => () => timed(() => all(containers.exec(sandbox, argv).output));
      return [
        await opening("open and first output, in a new container", containers, few),
        // It takes as long to prepare the next one as to open two or three.
        await opening("the same, in a prepared container", ahead, few, () => pause(1_500)),
        await against("first output", inside(hello), overExec(hello)),
        await against(
          `an echo of 100 bytes (${rounds} in sequence)`,
          async () => echoes(await spawned(sandbox, cat), rounds),
          echoesOverExec(cat),
        ),
        await against(
          "the same through docker exec of a Node relay",
          echoesOverExec(relayed("node", cat)),
          echoesOverExec(cat),
          false,
        ),
        await against("1 MB", inside(lines(MB)), overExec(lines(MB))),
        await against("100 MB", inside(lines(100 * MB)), overExec(lines(100 * MB))),
        await manyAtOnce(containers),
      ];
    } finally {
      await sandbox.close();
    }
  },
};

/** @param before called before each, outside the measurement. */
async function opening(
  what: string,
  containers: Containers,
  times: number,
  before: () => Promise<unknown> = async () => undefined,
): Promise<GoalMeasurement> {
  const values: number[] = [];
  for (let time = -1; time < times; time += 1) {
    await before();
    const begun = performance.now();
    const sandbox = await containers.open();
    await all((await spawned(sandbox, hello)).output);
    if (time >= 0) values.push(performance.now() - begun);
    await sandbox.close();
  }
  return { what, unit: "ms", values, limit: { atMost: 350 } };
}

async function manyAtOnce(containers: Containers): Promise<GoalMeasurement> {
  const begun = performance.now();
  const opened = await Promise.allSettled(
    Array.from({ length: together }, async () => {
      const sandbox = await containers.open();
      await all((await spawned(sandbox, hello)).output);
      return sandbox;
    }),
  );
  const took = performance.now() - begun;
  const up = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  await Promise.all(up.map((sandbox) => sandbox.close()));
  return {
    what: `${together} sandboxes opened at once, a program run in each: failures`,
    unit: "count",
    values: [together - up.length],
    limit: { atMost: 0 },
    note: `all up and run after ${short(took)} ms`,
  };
}
