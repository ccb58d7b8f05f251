import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Goal, GoalMeasurement } from "../../goal.js";
import { linesOf } from "../../http.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";

/** Broken agents, by what they do: the program's text. */
const broken = {
  "throws when it is loaded": "throw new Error('broken agent')\n",
  "exits at once, with success": "process.exit(0)\n",
  "prints something other than ACP, and exits": "console.log('hello, I am no agent'); process.exitCode = 3\n",
} as const;

const limit = { atMost: 100 } as const;

/** A run that can't succeed fails at once. */
export const brokenAgent: Goal = {
  id: "G18",
  title: "missing or broken agent → terminal record",
  goal: "≤ 100 ms",
  needs: [],
  async run({ pairs }) {
    await using folder = await temporaryFolder();
    const missing = await endsOf(join(folder.path, "not-there.mjs"), pairs(20));
    const measurements: GoalMeasurement[] = [
      { what: "an agent that isn't installed", unit: "ms", values: missing, limit },
    ];
    const file = join(folder.path, "broken.mjs");
    for (const [what, program] of Object.entries(broken)) {
      await writeFile(file, program);
      measurements.push({
        what: `an agent that ${what}`,
        unit: "ms",
        values: await endsOf(file, pairs(20)),
        limit,
      });
    }
    const again = await endsOf(file, Math.min(5, pairs(5)), "at once");
    const crash = await crashes(pairs(20));
    return [
      ...measurements,
      {
        what: "the last of these, directly after another failure: includes a new probe",
        unit: "ms",
        values: again,
      },
      {
        what: "an agent that crashes during its turn, from its last output",
        unit: "ms",
        values: crash,
        limit,
      },
    ];
  },
};

/**
 * From the request to the terminal record, with this program instead of the agent. After a failure the runner probes
 * again before it plans. This waits for that probe before the next request, unless `at once`.
 */
async function endsOf(
  command: string,
  times: number,
  next: "at rest" | "at once" = "at rest",
): Promise<number[]> {
  await using ambit = await startAmbit({ harness: { overrides: { demo: { command } } } });
  const values: number[] = [];
  for (let time = -3; time < times; time += 1) {
    if (next === "at rest") await ambit.caller.post("/plan", demoRequest("say hello"));
    const begun = performance.now();
    let last = "";
    const response = await ambit.caller.open("/run", demoRequest("say hello"), "application/x-ndjson");
    for await (const line of linesOf(response)) last = line;
    const took = performance.now() - begun;
    if (!last.includes('"kind":"result"') || !last.includes('"ok":false')) {
      throw new Error(`expected a terminal record of a failure: ${last.slice(0, 300)}`);
    }
    if (time >= 0) values.push(took);
  }
  return values;
}

async function crashes(times: number): Promise<number[]> {
  await using ambit = await startAmbit();
  const values: number[] = [];
  for (let time = -3; time < times; time += 1) {
    let said = 0;
    let last = "";
    const body = demoRequest("say now\ncrash out of memory");
    for await (const line of linesOf(await ambit.caller.open("/run", body, "application/x-ndjson"))) {
      if (line.includes('"delta":"now"')) said = performance.now();
      last = line;
    }
    const took = performance.now() - said;
    if (said === 0 || !last.includes('"ok":false'))
      throw new Error(`the crash went unnoticed: ${last.slice(0, 300)}`);
    if (time >= 0) values.push(took);
  }
  return values;
}
