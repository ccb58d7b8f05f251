import type { Goal, GoalMeasurement, GoalOptions } from "../../goal.js";
import { type CpuMeter, meterCpu } from "../../machine/cpu-meter.js";
import { interleaved, median, short, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import type { AgentPair } from "../../subjects/agents/real-agents.js";
import { run } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

const prompt = "[[say hello]]";
const warmUp = 1;

interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

async function cost(meter: CpuMeter, step: () => Promise<unknown>): Promise<Cost> {
  const before = meter.ms();
  const wall = await timed(step);
  return { wall, cpu: meter.ms() - before };
}

/** Wall time and CPU of the same runs. */
async function coldRuns({ ambit, direct, request }: AgentPair, what: string, pairs: number, isGoal: boolean) {
  const meters = [meterCpu(ambit.program.pid), meterCpu(direct.program.pid)] as const;
  const costs: { readonly ours: Cost[]; readonly theirs: Cost[] } = { ours: [], theirs: [] };
  const body = request(prompt);
  const noted = (kept: Cost[], one: Cost) => {
    kept.push(one);
    return one.wall;
  };
  await interleaved(
    async () => noted(costs.ours, await cost(meters[0], () => run(ambit.caller, body))),
    async () => noted(costs.theirs, await cost(meters[1], () => direct.run(prompt))),
    { pairs, warmUp },
  );
  const measurement = (part: keyof Cost): GoalMeasurement => {
    const ours = costs.ours.slice(warmUp).map((one) => one[part]);
    const theirs = costs.theirs.slice(warmUp).map((one) => one[part]);
    return {
      what: `${what}, ${part === "cpu" ? "CPU" : "wall"}`,
      unit: "×",
      values: ours.map((value, index) => value / (theirs[index] ?? Number.NaN)),
      ...(isGoal ? { limit: { atMost: 1.05 } } : {}),
      note: `${short(median(ours))} / ${short(median(theirs))} ms`,
    };
  };
  return { measured: [measurement("wall"), measurement("cpu")], meters };
}

async function measure(options: GoalOptions, confined: boolean): Promise<readonly GoalMeasurement[]> {
  const meters: CpuMeter[] = [];
  try {
    return await eachAgent(
      options,
      async (pair, agent) => {
        const what = `${agent}, ${confined ? "in its jail, with the model route" : "unconfined"}`;
        const runs = await coldRuns(pair, what, options.pairs(6), !confined);
        meters.push(...runs.meters);
        return runs.measured;
      },
      { confined },
    );
  } finally {
    await Promise.all(meters.map((meter) => meter.close()));
  }
}

export const coldAgents: Goal = {
  id: "A1",
  title: "G1 and G2 with real agents: cold run ÷ same agent over the ACP SDK, wall and CPU seconds",
  goal: "≤ 1.05",
  needs: [linux, installedAgents],
  run: (options) => measure(options, false),
};

export const confinedAgents: Goal = {
  id: "A2",
  title: "the same, confined: no network, no key inside, the model over the route",
  goal: "–",
  needs: [linux, installedAgents],
  run: (options) => measure(options, true),
};
