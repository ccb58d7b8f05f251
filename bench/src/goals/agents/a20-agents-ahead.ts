import type { Goal, GoalMeasurement } from "../../goal.js";
import type { HttpCaller } from "../../http.js";
import { pause } from "../../machine/program.js";
import { median, rotating, short, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { openPair } from "../../subjects/agents/real-agents.js";
import { run } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

/** Milliseconds that the model takes; real ones take seconds. */
const working = "[[slow 6 10]]";
const instant = "[[say hi]]";

/** Milliseconds for what a run closes, and for the start of the next agent, to end. */
const quietMs = 500;

/** Resolves when an agent waits, and its start no longer takes processor time. */
async function waits(caller: HttpCaller): Promise<void> {
  while (!(await caller.get("/metrics")).text.includes("\nambit_prewarm_waiting 1")) await pause(50);
  await pause(quietMs);
}

export const agentsAhead: Goal = {
  id: "A20",
  title:
    "Real agents, confined: cold run with an agent that was started ahead ÷ second prompt on an open ACP session",
  goal: "≤ 1.5",
  needs: [linux, installedAgents],
  run: (options) =>
    eachAgent(
      options,
      async ({ ambit, direct, request }, agent) => {
        await using without = await openPair(agent, { confined: true });
        await direct.open("open");
        await direct.prompt("open", instant);
        const measure = async (prompt: string, what: string): Promise<readonly GoalMeasurement[]> => {
          const sides = {
            ahead: async () => {
              await waits(ambit.caller);
              return await timed(() => run(ambit.caller, request(prompt)));
            },
            cold: async () => {
              await pause(quietMs);
              return await timed(() => run(without.ambit.caller, without.request(prompt)));
            },
            own: async () => {
              await direct.begin("ahead");
              await pause(quietMs);
              const took = await timed(() => direct.converse("ahead", prompt));
              await direct.close("ahead");
              return took;
            },
            second: () => timed(() => direct.prompt("open", prompt)),
          };
          const names = ["ahead", "cold", "own", "second"] as const;
          const costs = await rotating(names, (side) => sides[side](), {
            rounds: options.pairs(8),
            warmUp: 1,
          });
          const of = (side: (typeof names)[number]) => costs.get(side) ?? [];
          const over = (side: (typeof names)[number], floor: (typeof names)[number]) =>
            of(side).map((value, index) => value / (of(floor)[index] ?? Number.NaN));
          const behind = (side: (typeof names)[number], floor: (typeof names)[number]) =>
            `${short(median(of(side)))} / ${short(median(of(floor)))} ms`;
          return [
            {
              what: `${agent}, ${what}`,
              unit: "×",
              values: over("ahead", "second"),
              limit: { atMost: 1.5 },
              note: behind("ahead", "second"),
            },
            {
              what: `${agent}, ${what}: ÷ session/new and first prompt of one that was started by hand`,
              unit: "×",
              values: over("ahead", "own"),
              limit: { atMost: 1.5 },
              note: behind("ahead", "own"),
            },
            {
              what: `${agent}, ${what}: the agent's own share, session/new and first prompt ÷ second prompt`,
              unit: "×",
              values: over("own", "second"),
              note: behind("own", "second"),
            },
            {
              what: `${agent}, ${what}: ÷ cold run of a new agent`,
              unit: "×",
              values: over("ahead", "cold"),
              note: behind("ahead", "cold"),
            },
          ];
        };
        return [
          ...(await measure(working, "whose model takes 50 ms")),
          ...(await measure(instant, "whose model takes no time")),
        ];
      },
      { confined: true, ahead: true },
      ["codex", "gemini"],
    ),
};
