import type { Goal } from "../../goal.js";
import { interleaved, mediansOf, timed } from "../../measure.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

/** Milliseconds: as long as a fast turn; those of real agents take seconds. */
const script = "say let me see\nsleep 50\nsay done";

/** A named session keeps its agent, so the next turn costs only itself. */
export const warmTurn: Goal = {
  id: "G3",
  title: "warm turn ÷ second prompt on an open ACP session",
  goal: "≤ 1.10",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using direct = startAcpDirect();
    const body = demoRequest(script, { sessionId: "bench-warm" });
    await direct.open("warm");
    const turns = await interleaved(
      () => timed(() => run(ambit.caller, body)),
      () => timed(() => direct.prompt("warm", script)),
      { pairs: pairs(40) },
    );
    const instant = demoRequest("say hi", { sessionId: "bench-warm" });
    const bare = await interleaved(
      () => timed(() => run(ambit.caller, instant)),
      () => timed(() => direct.prompt("warm", "say hi")),
      { pairs: pairs(40) },
    );
    return [
      {
        what: "a warm turn in which the agent works for 50 ms",
        unit: "×",
        values: turns.ratios,
        limit: { atMost: 1.1 },
        note: mediansOf(turns, "ms"),
      },
      {
        what: "a warm turn of an agent that takes no time at all",
        unit: "×",
        values: bare.ratios,
        note: mediansOf(bare, "ms"),
      },
    ];
  },
};
