import type { Goal } from "../../goal.js";
import { cpuMsOf, descendantsOf, pssMibOf } from "../../machine/processes.js";
import { pause } from "../../machine/program.js";
import { linux } from "../../needs.js";
import { type AmbitServer, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

const events = 1_000_000;
const quietMs = 3_000;
const timeoutMs = 120_000;

/** A reader that stops reading slows the agent, and costs the runner no memory. */
export const unreadStream: Goal = {
  id: "G12",
  title: "memory growth, a client that doesn't read, 1 M events",
  goal: "≤ 16 MiB",
  needs: [linux],
  async run({ pairs }) {
    const growths: number[] = [];
    const settled: number[] = [];
    for (let time = 0; time < Math.min(3, pairs(3)); time += 1) {
      await using ambit = await startAmbit();
      // Not the cost of an unread stream: memory that any activity needs.
      for (let earlier = 0; earlier < 3; earlier += 1) await run(ambit.caller, demoRequest("stream 5000"));
      await pause(1_000);
      const { growth, atEnd } = await unread(ambit);
      growths.push(growth);
      settled.push(atEnd);
    }
    return [
      {
        what: "the largest growth of the server's PSS, with no reader",
        unit: "MiB",
        values: growths,
        limit: { atMost: 16 },
        note: `growth at rest: ${settled.map((growth) => growth.toFixed(1)).join(", ")} MiB`,
      },
    ];
  },
};

/** Samples until neither the server nor the agent works any longer. */
async function unread({ caller, program }: AmbitServer): Promise<{ growth: number; atEnd: number }> {
  const before = pssMibOf(program.pid);
  const response = await caller.open("/run", demoRequest(`stream ${events}`), "application/x-ndjson");
  response.pause();
  response.on("error", () => undefined);
  const begun = performance.now();
  let max = before;
  let work = -1;
  let quietSince = performance.now();
  while (performance.now() - begun < timeoutMs && performance.now() - quietSince < quietMs) {
    await pause(100);
    max = Math.max(max, pssMibOf(program.pid));
    const now = [program, ...descendantsOf(program.pid)].reduce((sum, { pid }) => sum + cpuMsOf(pid), 0);
    if (now > work + 10) quietSince = performance.now();
    work = now;
  }
  if (response.complete)
    throw new Error("the whole stream fitted into the connection: there was nothing to hold back");
  const atEnd = pssMibOf(program.pid) - before;
  response.destroy();
  return { growth: max - before, atEnd };
}
