import type { Goal } from "../../goal.js";
import { interleaved, mediansOf, timed } from "../../measure.js";
import { run } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

/** Milliseconds that the model takes: as long as a fast one; real models take seconds. */
const working = "[[slow 6 10]]";
const instant = "[[say hi]]";

export const warmAgents: Goal = {
  id: "A3",
  title: "G3 with real agents: warm turn ÷ second prompt on an open ACP session",
  goal: "≤ 1.10",
  needs: [installedAgents],
  run: (options) =>
    eachAgent(options, async ({ ambit, direct, request }, agent) => {
      await direct.open("warm");
      const turns = (prompt: string) => {
        const body = request(prompt, { sessionId: `bench-${agent}` });
        return interleaved(
          () => timed(() => run(ambit.caller, body)),
          () => timed(() => direct.prompt("warm", prompt)),
          { pairs: options.pairs(25), warmUp: 3 },
        );
      };
      const worked = await turns(working);
      const bare = await turns(instant);
      return [
        {
          what: `${agent}, whose model takes 50 ms`,
          unit: "×",
          values: worked.ratios,
          limit: { atMost: 1.1 },
          note: mediansOf(worked, "ms"),
        },
        {
          what: `${agent}, whose model takes no time`,
          unit: "×",
          values: bare.ratios,
          note: mediansOf(bare, "ms"),
        },
      ];
    }),
};
