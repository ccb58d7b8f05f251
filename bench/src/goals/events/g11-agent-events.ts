import type { Goal } from "../../goal.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startAcpDirect } from "../../subjects/acp-direct.js";
import { startAmbit } from "../../subjects/ambit-server.js";
import { demoRequest } from "../../subjects/requests.js";
import { watchRun } from "../../subjects/runs.js";

const chunks = 30_000;

/** A talkative agent isn't held up on its way through the server to the caller. */
export const agentEvents: Goal = {
  id: "G11",
  title: "events/s through a real agent ÷ ACP direct",
  goal: "≥ 0.97",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using direct = startAcpDirect();
    const script = `stream ${chunks}`;
    const measured = await interleaved(
      async () => {
        const { deltas, sinceFirstDeltaMs } = await watchRun(ambit.caller, demoRequest(script));
        if (deltas !== chunks) throw new Error(`${deltas} of ${chunks} chunks came`);
        return (deltas / sinceFirstDeltaMs) * 1_000;
      },
      async () => {
        const { updates, sinceFirstMs } = await direct.run(script);
        return (updates / sinceFirstMs) * 1_000;
      },
      { pairs: pairs(15) },
    );
    return [
      {
        what: `events/s of the demo agent (${chunks.toLocaleString("en")} chunks)`,
        unit: "×",
        values: measured.ratios,
        limit: { atLeast: 0.97 },
        note: mediansOf(measured, "/s"),
      },
    ];
  },
};
