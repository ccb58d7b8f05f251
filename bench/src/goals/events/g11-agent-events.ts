import type { Goal, GoalMeasurement } from "../../goal.js";
import type { HttpCaller } from "../../http.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { type AmbitServer, startAmbit } from "../../subjects/server/ambit-server.js";
import { startAgentRelay } from "../../subjects/server/bare-server.js";
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
    await using relay = await startAgentRelay();
    const script = `stream ${chunks}`;
    const rate = async (caller: HttpCaller, path: string, body: string) => {
      const { deltas, sinceFirstDeltaMs } = await watchRun(caller, body, path);
      if (deltas !== chunks) throw new Error(`${deltas} of ${chunks} chunks came`);
      return (deltas / sinceFirstDeltaMs) * 1_000;
    };
    const through = (server: AmbitServer) => () => rate(server.caller, "/run", demoRequest(script));
    const relayed = () => rate(relay.caller, "/", script);
    const straight = async () => {
      const { updates, sinceFirstMs } = await direct.run(script);
      return (updates / sinceFirstMs) * 1_000;
    };
    /** Against both floors: the agent without a server, and a server that does nothing else. */
    const beside = async (what: string, server: AmbitServer, usual: number): Promise<GoalMeasurement[]> => {
      const toDirect = await interleaved(through(server), straight, { pairs: pairs(usual) });
      const toRelay = await interleaved(through(server), relayed, { pairs: pairs(usual) });
      return [
        {
          what,
          unit: "×",
          values: toDirect.ratios,
          limit: { atLeast: 0.97 },
          note: mediansOf(toDirect, "/s"),
        },
        {
          what: `${what}, ÷ through a bare relay`,
          unit: "×",
          values: toRelay.ratios,
          limit: { atLeast: 0.97 },
          note: mediansOf(toRelay, "/s"),
        },
      ];
    };
    const floor = await interleaved(relayed, straight, { pairs: pairs(15) });
    const plain = await beside(
      `events/s of the demo agent (${chunks.toLocaleString("en")} chunks)`,
      ambit,
      15,
    );
    const stored: GoalMeasurement[] = [];
    for await (const store of measuredStores()) {
      await using _store = store;
      await using keeping = await startAmbit({ plugins: [store.plugin] });
      stored.push(...(await beside(`each event stored first: ${store.name}`, keeping, 9)));
    }
    return [
      ...plain,
      ...stored,
      {
        what: "through a bare relay ÷ ACP direct: a server and a reader more",
        unit: "×",
        values: floor.ratios,
        note: mediansOf(floor, "/s"),
      },
    ];
  },
};
