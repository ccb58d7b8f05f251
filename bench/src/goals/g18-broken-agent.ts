import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Goal } from "../goal.js";
import { temporaryFolder } from "../machine/temporary-folder.js";
import { startAmbit } from "../subjects/ambit-server.js";
import { linesOf } from "../subjects/http.js";
import { demoRequest } from "../subjects/requests.js";

/** What is wrong with the agent's program, and the text that comes of it. */
const broken = {
  "throws when it is loaded": "throw new Error('broken agent')\n",
  "leaves at once, with success": "process.exit(0)\n",
  "prints what is no ACP, and leaves": "console.log('hello, I am no agent'); process.exitCode = 3\n",
} as const;

const limit = { atMost: 100 } as const;

/** A run that can't be says so at once. */
export const brokenAgent: Goal = {
  id: "G18",
  title: "missing or broken agent → terminal record",
  goal: "≤ 100 ms",
  needs: [],
  async run({ pairs }) {
    await using folder = await temporaryFolder();
    const missing = await endsOf(join(folder.path, "not-there.mjs"), pairs(20));
    const measurements = [
      { what: "an agent that isn't installed", unit: "ms", values: missing, limit } as const,
    ];
    const others = [];
    for (const [what, program] of Object.entries(broken)) {
      const file = join(folder.path, "broken.mjs");
      await writeFile(file, program);
      const values = await endsOf(file, pairs(20));
      others.push({ what: `an agent that ${what}`, unit: "ms", values, limit } as const);
    }
    const crash = await crashes(pairs(20));
    return [
      ...measurements,
      ...others,
      { what: "an agent that crashes in its turn, from its last word", unit: "ms", values: crash, limit } as const,
    ];
  },
};

/** From the request to the terminal record, with this program in the agent's place. */
async function endsOf(command: string, times: number): Promise<number[]> {
  await using ambit = await startAmbit({ harness: { overrides: { demo: { command } } } });
  const values: number[] = [];
  for (let time = -3; time < times; time += 1) {
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
    if (said === 0 || !last.includes('"ok":false')) throw new Error(`the crash went unnoticed: ${last.slice(0, 300)}`);
    if (time >= 0) values.push(took);
  }
  return values;
}
