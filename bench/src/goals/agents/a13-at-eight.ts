import type { Goal } from "../../goal.js";
import { descendantsOf, pssMibOf } from "../../machine/processes.js";
import { pause } from "../../machine/program.js";
import { interleaved, mediansOf } from "../../measure.js";
import { linux } from "../../needs.js";
import type { AgentPair } from "../../subjects/agents/real-agents.js";
import { run } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

const atOnce = 8;
const prompt = "[[say hello]]";
const names = Array.from({ length: atOnce }, (_, index) => `bench-${index}`);

/** Each agent after its first turn, kept for a second. */
async function perSession({ ambit: { caller, program }, request }: AgentPair): Promise<number> {
  const before = pssMibOf(program.pid);
  await Promise.all(names.map((sessionId) => run(caller, request(prompt, { sessionId }))));
  const agents = descendantsOf(program.pid).reduce((sum, { pid }) => sum + pssMibOf(pid), 0);
  const grown = Math.max(0, pssMibOf(program.pid) - before);
  await Promise.all(names.map((sessionId) => caller.post("/kill", JSON.stringify({ sessionId }))));
  while (descendantsOf(program.pid).length > 0) await pause(20);
  return (agents + grown) / atOnce;
}

async function perBareAgent({ direct }: AgentPair): Promise<number> {
  await Promise.all(names.map((name) => direct.open(name)));
  await Promise.all(names.map((name) => direct.prompt(name, prompt)));
  const { pid } = direct.program;
  const agents = descendantsOf(pid).reduce((sum, each) => sum + pssMibOf(each.pid), 0);
  await Promise.all(names.map((name) => direct.close(name)));
  while (descendantsOf(pid).length > 0) await pause(20);
  return agents / atOnce;
}

export const agentMemory: Goal = {
  id: "A13",
  title: "G13 with real agents: PSS per concurrent session at 8 ÷ bare agent",
  goal: "≤ 1.03",
  needs: [linux, installedAgents],
  run: (options) =>
    eachAgent(options, async (pair, agent) => {
      const measured = await interleaved(
        () => perSession(pair),
        () => perBareAgent(pair),
        { pairs: options.pairs(2), warmUp: 1 },
      );
      return [
        {
          what: `${agent} and the growth of the server, unconfined`,
          unit: "×",
          values: measured.ratios,
          limit: { atMost: 1.03 },
          note: mediansOf(measured, "MiB"),
        },
      ];
    }),
};

export const agentsAtEight: Goal = {
  id: "A14",
  title: "G14 with real agents: cold runs/s at 8 ÷ ACP direct",
  goal: "≥ 0.95",
  needs: [installedAgents],
  run: (options) =>
    eachAgent(options, async ({ ambit, direct, request }, agent) => {
      const body = request(prompt);
      const measured = await interleaved(
        () => perSecond(() => run(ambit.caller, body)),
        () => perSecond(() => direct.run(prompt)),
        { pairs: options.pairs(2), warmUp: 0 },
      );
      return [
        {
          what: `${agent}: ${atOnce} cold runs at once, unconfined`,
          unit: "×",
          values: measured.ratios,
          limit: { atLeast: 0.95 },
          note: mediansOf(measured, "/s"),
        },
      ];
    }),
};

async function perSecond(step: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await Promise.all(names.map(step));
  return (atOnce / (performance.now() - begun)) * 1_000;
}
