import { randomUUID } from "node:crypto";
import type { Goal } from "../../goal.js";
import { descendantsOf, isRunning, type ProcessIdentity, processesWith } from "../../machine/processes.js";
import { pause } from "../../machine/program.js";
import { linux } from "../../needs.js";
import { type AmbitServer, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run, untilLine } from "../../subjects/server/runs.js";

const runs = 200;
const atOnce = 4;
/** Milliseconds after which a remaining process counts as left behind. */
const maxEndSeconds = 10;

/** A client that disconnects leaves nothing. */
export const clientGone: Goal = {
  id: "G17",
  title: "client gone → nothing left; orphans in 200 runs",
  goal: "≤ 50 ms; 0",
  needs: [linux],
  async run({ pairs, progress }) {
    const ends: Record<"prefer" | "allow", number[]> = { prefer: [], allow: [] };
    const orphans: number[] = [];
    for (const unconfined of ["prefer", "allow"] as const) {
      await using ambit = await startAmbit({ unconfined });
      for (let time = -2; time < pairs(20); time += 1) {
        const took = await untilNothingIsLeft(ambit);
        if (time >= 0) ends[unconfined].push(took);
      }
      progress(`G17: ${runs} runs, ${unconfined === "prefer" ? "unconfined" : "in jails"}`);
      orphans.push(await orphansAfterRuns(ambit));
    }
    const limit = { atMost: 50 } as const;
    return [
      { what: "connection cut → no process of the run, unconfined", unit: "ms", values: ends.prefer, limit },
      { what: "connection cut → no process of the run, in its jail", unit: "ms", values: ends.allow, limit },
      {
        what: `processes left of ${runs} runs: ended, cancelled at any moment, detached (unconfined; in jails)`,
        unit: "count",
        values: orphans,
        limit: { atMost: 0 },
        note: orphans.join("; "),
      },
    ];
  },
};

/** A working agent with a command that keeps running. */
async function untilNothingIsLeft({ caller, program }: AmbitServer): Promise<number> {
  const body = demoRequest("say hello\nrun sleep 600");
  const response = await caller.open("/run", body, "application/x-ndjson");
  response.on("error", () => undefined);
  await untilLine(response, '"type":"tool_call"');
  // The command starts its processes shortly after it is announced.
  await pause(60);
  const survivors: readonly ProcessIdentity[] = descendantsOf(program.pid);
  if (survivors.length < 2) throw new Error("the run had no processes to begin with");
  const begun = performance.now();
  response.destroy();
  while (survivors.some(isRunning)) {
    if (performance.now() - begun > 30_000) throw new Error("the run's processes don't end");
    await pause(1);
  }
  return performance.now() - begun;
}

async function orphansAfterRuns(ambit: AmbitServer): Promise<number> {
  const { caller, program } = ambit;
  const mark = `600.${Math.floor(Math.random() * 1e9)}`;
  const scripts = [
    "say hello",
    `run sleep ${mark}`,
    `run (setsid sleep ${mark} &) ; true`,
    "detach 600",
    "stream 3000",
  ];
  let begun = 0;
  const work = async () => {
    while (begun < runs) {
      const index = begun;
      begun += 1;
      const body = demoRequest(scripts[index % scripts.length] ?? "");
      const ends = index % scripts.length === 0 || index % scripts.length === 4;
      if (ends && index % 2 === 0) await run(caller, body);
      else await cutAfter(ambit, body, Math.random() * 400);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  await run(caller, demoRequest(`say ${randomUUID()}`));
  const remaining = () => {
    const found = [descendantsOf(program.pid), processesWith(mark), processesWith(ambit.dataFolder)].flat();
    const others = found.filter((one) => one.pid !== program.pid && isRunning(one));
    return new Set(others.map(({ pid }) => pid)).size;
  };
  // The last cut runs are still ending.
  for (let seconds = 0; seconds < maxEndSeconds && remaining() > 0; seconds += 1) await pause(1_000);
  return remaining();
}

async function cutAfter({ caller }: AmbitServer, body: string, ms: number): Promise<void> {
  const response = await caller.open("/run", body, "application/x-ndjson");
  response.on("error", () => undefined);
  response.resume();
  await pause(ms);
  response.destroy();
}
