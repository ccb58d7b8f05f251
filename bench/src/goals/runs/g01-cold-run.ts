import type { Goal, GoalMeasurement } from "../../goal.js";
import { type CpuMeter, meterCpu } from "../../machine/cpu-meter.js";
import { interleaved, median, type Pairs, short, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { type ServerOptions, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

const script = "say hello";
const limit = { atMost: 1.05 } as const;

interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

/** Of the server. */
type Subject = Pick<ServerOptions, "unconfined" | "hasDefaults">;

const subjects = {
  unconfined: { unconfined: "prefer" },
  jailed: { unconfined: "allow" },
  defaults: { unconfined: "allow", hasDefaults: true },
} as const satisfies Record<string, Subject>;

const measured = new Map<string, ReturnType<typeof measureColdRuns>>();

/** G1 and G2 are two costs of the same runs. */
function coldRuns(name: keyof typeof subjects, pairs: number): ReturnType<typeof measureColdRuns> {
  const known = measured.get(name);
  if (known !== undefined) return known;
  const begun = measureColdRuns(subjects[name], pairs);
  measured.set(name, begun);
  return begun;
}

async function measureColdRuns(subject: Subject, pairs: number): Promise<{ wall: Pairs; cpu: Pairs }> {
  const meters: CpuMeter[] = [];
  try {
    return await costsOfPairs(subject, pairs, meters);
  } finally {
    await Promise.all(meters.map((meter) => meter.close()));
  }
}

async function costsOfPairs(
  subject: Subject,
  pairs: number,
  meters: CpuMeter[],
): Promise<{ wall: Pairs; cpu: Pairs }> {
  await using ambit = await startAmbit(subject);
  await using direct = startAcpDirect();
  const [ourCpu, theirCpu] = [meterCpu(ambit.program.pid), meterCpu(direct.program.pid)];
  meters.push(ourCpu, theirCpu);
  const body = demoRequest(script);
  const ours: Cost[] = [];
  const theirs: Cost[] = [];
  const warmUp = 3;
  await interleaved(
    async () => noted(ours, await cost(ourCpu, () => run(ambit.caller, body))),
    async () => noted(theirs, await cost(theirCpu, () => direct.run(script))),
    { pairs, warmUp },
  );
  const pairsOf = (part: (cost: Cost) => number): Pairs => {
    const subject = ours.slice(warmUp).map(part);
    const floor = theirs.slice(warmUp).map(part);
    return { subject, floor, ratios: subject.map((value, index) => value / (floor[index] ?? Number.NaN)) };
  };
  return { wall: pairsOf(({ wall }) => wall), cpu: pairsOf(({ cpu }) => cpu) };
}

function noted(costs: Cost[], cost: Cost): number {
  costs.push(cost);
  return cost.wall;
}

async function cost(meter: CpuMeter, step: () => Promise<unknown>): Promise<Cost> {
  const before = meter.ms();
  const wall = await timed(step);
  return { wall, cpu: meter.ms() - before };
}

const medians = ({ subject, floor }: Pairs) => `${short(median(subject))} / ${short(median(floor))} ms`;

/** The ratios of one cost, without a boundary and in a jail. */
async function outcomes(measure: "wall" | "cpu", count: number): Promise<readonly GoalMeasurement[]> {
  const name = measure === "wall" ? "wall" : "CPU";
  const plain = (await coldRuns("unconfined", count))[measure];
  const confined = (await coldRuns("jailed", count))[measure];
  const stored = (await coldRuns("defaults", count))[measure];
  return [
    { what: `demo agent, unconfined, ${name}`, unit: "×", values: plain.ratios, limit, note: medians(plain) },
    { what: `demo agent, in its jail, ${name}`, unit: "×", values: confined.ratios, note: medians(confined) },
    {
      what: `the same, with all default plugins and a store on disk, ${name}`,
      unit: "×",
      values: stored.ratios,
      note: medians(stored),
    },
  ];
}

export const coldRun: Goal = {
  id: "G1",
  title: "cold run ÷ same agent over the ACP SDK, wall",
  goal: "≤ 1.05",
  needs: [linux],
  run: ({ pairs }) => outcomes("wall", pairs(20)),
};

export const coldRunCpu: Goal = {
  id: "G2",
  title: "cold run ÷ same agent over the ACP SDK, CPU seconds of the runner and all it starts",
  goal: "≤ 1.05",
  needs: [linux],
  run: ({ pairs }) => outcomes("cpu", pairs(20)),
};
