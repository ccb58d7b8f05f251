import { spawn } from "node:child_process";
import { once } from "node:events";
import { messageOf } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { msLater } from "../../figures.js";
import type { Goal, GoalMeasurement } from "../../goal.js";
import { interleaved, short, timed } from "../../measure.js";
import { confinement } from "../../needs.js";
import { openBackend } from "../../subjects/sandboxes/confined.js";

const together = 50;

/** The cost of a jail before its program's first instruction. */
export const spawnInJail: Goal = {
  id: "I3",
  title: "spawn to first instruction, over a plain spawn; 50 sandboxes at once",
  goal: "≤ 20 ms; ≤ 35 ms with cgroups",
  needs: [confinement],
  async run({ pairs, progress }) {
    const measurements = [
      await overPlain("everything on except cgroups", { limited: false, atMost: 20, pairs: pairs(60) }),
      await overPlain("the same in a repository, whose settings are protected", {
        limited: false,
        isRepository: true,
        atMost: 20,
        pairs: pairs(60),
      }),
    ];
    try {
      measurements.push(
        await overPlain("with cgroups of memory, processes, CPU", {
          limited: true,
          atMost: 35,
          pairs: pairs(60),
        }),
      );
    } catch (error) {
      progress(`I3 with cgroups isn't measured: ${messageOf(error)}`);
    }
    return [...measurements, ...(await manyAtOnce())];
  },
};

interface Case {
  readonly limited: boolean;
  /** Default false. */
  readonly isRepository?: boolean;
  readonly atMost: number;
  readonly pairs: number;
}

async function overPlain(
  what: string,
  { limited, isRepository = false, atMost, pairs }: Case,
): Promise<GoalMeasurement> {
  const backend = await openBackend({ network: "own", limited });
  try {
    const sandbox = await backend.open();
    if (isRepository) await sandbox.writeFiles(repositoryIn(sandbox.workspace));
    const spawns = await interleaved(
      () => alone(() => untilFirstByte(sandbox)),
      () => alone(plainFirstByte),
      { pairs, warmUp: 5 },
    );
    return msLater(`spawn to first byte − a plain spawn; ${what}`, spawns, { atMost });
  } finally {
    await backend.close();
  }
}

const repositoryIn = (workspace: string) => [
  { path: `${workspace}/.git/config`, content: "[core]\n" },
  { path: `${workspace}/.git/hooks/pre-commit`, content: "#!/bin/sh\n", executable: true },
];

async function untilFirstByte(sandbox: Sandbox): Promise<void> {
  const child = await sandbox.spawn({ argv: ["/bin/echo", "here"], env: { PATH: "/usr/bin:/bin" } });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  if (value === undefined) throw new Error("the jail's program said nothing");
  reader.releaseLock();
  ending.push(child.exit);
}

const ending: Promise<unknown>[] = [];

/** Waits, outside the measurement, until the previous processes have ended, which would slow both sides. */
async function alone(step: () => Promise<void>): Promise<number> {
  await Promise.all(ending.splice(0));
  return await timed(step);
}

async function plainFirstByte(): Promise<void> {
  const child = spawn("/bin/echo", ["here"], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: "/usr/bin:/bin" },
  });
  await once(child.stdout, "data");
  ending.push(once(child, "exit"));
}

async function manyAtOnce(): Promise<readonly GoalMeasurement[]> {
  const backend = await openBackend({ network: "own", limited: false });
  try {
    const begun = performance.now();
    const opened = await Promise.allSettled(Array.from({ length: together }, () => backend.open()));
    const up = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    await Promise.all(up.map((sandbox) => untilFirstByte(sandbox)));
    const took = performance.now() - begun;
    await Promise.all(ending.splice(0));
    return [
      {
        what: `${together} sandboxes opened at once, a program run in each: failures`,
        unit: "count",
        values: [together - up.length],
        limit: { atMost: 0 },
        note: `all up and run after ${short(took)} ms`,
      },
    ];
  } finally {
    await backend.close();
  }
}
