import type { Goal, Measurement } from "../../goal.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { type AmbitServer, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { watchRun } from "../../subjects/server/runs.js";
import { measuredStores } from "../../subjects/server/stores.js";

const chunks = 30_000;

/** Measures whether an agent with many events is slowed down by the server. */
export const agentEvents: Goal = {
  id: "G11",
  title: "events/s through a real agent ÷ ACP direct",
  goal: "≥ 0.97",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using direct = startAcpDirect();
    const script = `stream ${chunks}`;
    const through = (server: AmbitServer) => async () => {
      const { deltas, sinceFirstDeltaMs } = await watchRun(server.caller, demoRequest(script));
      if (deltas !== chunks) throw new Error(`${deltas} of ${chunks} chunks came`);
      return (deltas / sinceFirstDeltaMs) * 1_000;
    };
    const straight = async () => {
      const { updates, sinceFirstMs } = await direct.run(script);
      return (updates / sinceFirstMs) * 1_000;
    };
    const measured = await interleaved(through(ambit), straight, { pairs: pairs(15) });
    const stored: Measurement[] = [];
    for await (const store of measuredStores()) {
      await using _store = store;
      await using keeping = await startAmbit({ plugins: [store.plugin] });
      const kept = await interleaved(through(keeping), straight, { pairs: pairs(9) });
      stored.push({
        what: `the same, each event stored first: ${store.name}`,
        unit: "×",
        values: kept.ratios,
        limit: { atLeast: 0.97 },
        note: mediansOf(kept, "/s"),
      });
    }
    return [
      {
        what: `events/s of the demo agent (${chunks.toLocaleString("en")} chunks)`,
        unit: "×",
        values: measured.ratios,
        limit: { atLeast: 0.97 },
        note: mediansOf(measured, "/s"),
      },
      ...stored,
    ];
  },
};
