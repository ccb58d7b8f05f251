import type { Goal, GoalMeasurement, GoalOptions } from "../../goal.js";
import { type CpuMeter, meterCpu } from "../../machine/cpu-meter.js";
import { pause } from "../../machine/program.js";
import { interleaved, mediansOf, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import {
  type AgentContainer,
  meterEngine,
  openAgentContainer,
} from "../../subjects/agents/agent-container.js";
import type { AgentPair } from "../../subjects/agents/real-agents.js";
import { dockerEngine, openEngine } from "../../subjects/sandboxes/docker.js";
import { run } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

const prompt = "[[say hello]]";
const warmUp = 1;
/** Milliseconds in which a closed sandbox is removed and the next one is prepared. */
const quietMs = 1_500;

/** Cold runs in a container, confined and with the model route, compared with the agent that `docker exec` starts. */
export const agentsInDocker: Goal = {
  id: "I9",
  title: "G1 and G2 with real agents in Docker (runc): cold run ÷ the ACP SDK over docker exec, same agent",
  goal: "≤ 1.05 with a prepared container",
  needs: [linux, installedAgents, dockerEngine],
  async run(options) {
    const meters: CpuMeter[] = [];
    const engine = await openEngine();
    try {
      await using container = await openAgentContainer(engine);
      const { socket, image } = engine;
      const place = { socket, image, container: container.id, folder: container.folder };
      const ofEngine = meterEngine(engine);
      if (ofEngine !== undefined) meters.push(ofEngine);
      const made = (prewarm: number) =>
        eachAgent(
          options,
          async (pair, agent) => {
            const what = `${agent}, ${prewarm === 0 ? "in a new container" : "in a prepared container"}`;
            const own = [meterCpu(pair.ambit.program.pid), meterCpu(pair.direct.program.pid)] as const;
            meters.push(...own);
            // A prepared container is made during the run before: CPU is shown only for new ones.
            const engineMs = prewarm === 0 ? ofEngine?.ms : undefined;
            return await coldRuns(pair, container, what, own, engineMs, options);
          },
          { docker: { ...place, prewarm } },
        );
      return [...(await made(0)), ...(await made(1))];
    } finally {
      await engine[Symbol.asyncDispose]();
      // A group is empty when its processes have ended.
      await Promise.all(meters.map((meter) => meter.close()));
    }
  },
};

async function coldRuns(
  { ambit, direct, request }: AgentPair,
  container: AgentContainer,
  what: string,
  [ours, theirs]: readonly [CpuMeter, CpuMeter],
  engineMs: (() => number) | undefined,
  { pairs }: GoalOptions,
): Promise<readonly GoalMeasurement[]> {
  const body = request(prompt);
  const used: { readonly ours: number[]; readonly theirs: number[] } = { ours: [], theirs: [] };
  const cost = async (kept: number[], meter: CpuMeter, step: () => Promise<unknown>) => {
    await pause(quietMs);
    const before = meter.ms() + (engineMs?.() ?? 0);
    const wall = await timed(step);
    kept.push(meter.ms() + (engineMs?.() ?? 0) - before);
    return wall;
  };
  const measured = await interleaved(
    () => cost(used.ours, ours, () => run(ambit.caller, body)),
    async () => {
      const wall = await cost(used.theirs, theirs, () => direct.run(prompt));
      await container.clean();
      return wall;
    },
    { pairs: pairs(6), warmUp },
  );
  const wall: GoalMeasurement = {
    what: `${what}, wall`,
    unit: "×",
    values: measured.ratios,
    ...(engineMs === undefined ? { limit: { atMost: 1.05 } } : {}),
    note: mediansOf(measured, "ms"),
  };
  if (engineMs === undefined) return [wall];
  const [subject, floor] = [used.ours.slice(warmUp), used.theirs.slice(warmUp)];
  const ratios = subject.map((value, index) => value / (floor[index] ?? Number.NaN));
  const note = mediansOf({ ratios, subject, floor }, "ms");
  return [wall, { what: `${what}, CPU with the engine's`, unit: "×", values: ratios, note }];
}
