import { freePort } from "@ambit/backend-kit";
import type { Goal } from "../goal.js";
import { HttpCaller } from "../http.js";
import { memoryMibOf } from "../machine/processes.js";
import { type ProgramOptions, pause, startProgram } from "../machine/program.js";
import { temporaryFolder } from "../machine/temporary-folder.js";
import { interleaved, mediansOf } from "../measure.js";
import { linux } from "../needs.js";
import {
  type AmbitServer,
  ambitEntry,
  healthy,
  serveArguments,
  startAmbit,
} from "../subjects/server/ambit-server.js";
import { bareEntry, startBareServer } from "../subjects/server/bare-server.js";

/** Milliseconds until a started server has settled. */
const settleMs = 3_000;

/** A server that starts as fast as Node allows, and is small when idle. */
export const start: Goal = {
  id: "G15",
  title: "start ÷ bare node http; idle PSS likewise",
  goal: "≤ 3; ≤ 2.5",
  needs: [linux],
  async run({ pairs }) {
    await using folder = await temporaryFolder();
    const starts = await interleaved(
      async () => {
        const port = await freePort();
        return untilHealthy(ambitEntry, await serveArguments(folder, port), port);
      },
      async () => {
        const port = await freePort();
        return untilHealthy(bareEntry, { arguments: [String(port)] }, port);
      },
      { pairs: pairs(20) },
    );
    const resident: { subject: number[]; floor: number[] } = { subject: [], floor: [] };
    const idle = await interleaved(
      async () => await idlePss(await startAmbit(), resident.subject),
      async () => await idlePss(await startBareServer(), resident.floor),
      { pairs: Math.min(5, pairs(5)), warmUp: 0 },
    );
    const mapped = {
      ...resident,
      ratios: resident.subject.map((mib, at) => mib / (resident.floor[at] ?? Number.NaN)),
    };
    return [
      {
        what: "spawn until GET /health is 200 ÷ bare node http",
        unit: "×",
        values: starts.ratios,
        limit: { atMost: 3 },
        note: mediansOf(starts, "ms"),
      },
      {
        what: "idle PSS, after probing ÷ bare node http",
        unit: "×",
        values: idle.ratios,
        limit: { atMost: 2.5 },
        note: `${mediansOf(idle, "MiB")}; the more Node processes share its program, the smaller the floor`,
      },
      {
        what: "idle RSS, which counts shared pages in full",
        unit: "×",
        values: mapped.ratios,
        note: mediansOf(mapped, "MiB"),
      },
    ];
  },
};

async function untilHealthy(entry: string, options: ProgramOptions, port: number): Promise<number> {
  const caller = new HttpCaller(`http://127.0.0.1:${port}`);
  const begun = performance.now();
  const program = startProgram(entry, options);
  try {
    await healthy(program, caller, 1);
    return performance.now() - begun;
  } finally {
    caller.close();
    await program.stop();
  }
}

async function idlePss(
  server: Pick<AmbitServer, "program" | typeof Symbol.asyncDispose>,
  resident: number[],
): Promise<number> {
  try {
    await pause(settleMs);
    const { pss, rss } = memoryMibOf(server.program.pid);
    resident.push(rss);
    return pss;
  } finally {
    await server[Symbol.asyncDispose]();
  }
}
