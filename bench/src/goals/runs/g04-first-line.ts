import type { Goal, GoalMeasurement } from "../../goal.js";
import { type HttpCaller, linesOf } from "../../http.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { startBareServer } from "../../subjects/server/bare-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { measuredStores } from "../../subjects/server/stores.js";

/** A caller sees that its run has started long before an agent could have started. */
export const firstLine: Goal = {
  id: "G4",
  title: "first NDJSON line ÷ raw POST",
  goal: "≤ 6",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using bare = await startBareServer();
    const body = demoRequest("say hello");
    const measured = await interleaved(
      () => untilFirstLine(ambit.caller, body),
      () => rawPost(bare.caller, body),
      { pairs: pairs(60), warmUp: 10 },
    );
    const stored: GoalMeasurement[] = [];
    for await (const store of measuredStores()) {
      await using _store = store;
      await using keeping = await startAmbit({ plugins: [store.plugin] });
      const kept = await interleaved(
        () => untilFirstLine(keeping.caller, body),
        () => rawPost(bare.caller, body),
        { pairs: pairs(30), warmUp: 10 },
      );
      stored.push({
        what: `the same, the line stored first: ${store.name}`,
        unit: "×",
        values: kept.ratios,
        limit: { atMost: 6 },
        note: mediansOf(kept, "ms"),
      });
    }
    return [
      {
        what: "first NDJSON line ÷ raw POST",
        unit: "×",
        values: measured.ratios,
        limit: { atMost: 6 },
        note: mediansOf(measured, "ms"),
      },
      ...stored,
    ];
  },
};

/** Reads the run to its end, so that it is finished before the next measurement. */
async function untilFirstLine(caller: HttpCaller, body: string): Promise<number> {
  const begun = performance.now();
  let first: number | undefined;
  let last = "";
  for await (const line of linesOf(await caller.open("/run", body, "application/x-ndjson"))) {
    first ??= performance.now() - begun;
    last = line;
  }
  if (first === undefined || !last.includes('"ok":true'))
    throw new Error(`the run failed: ${last.slice(0, 300)}`);
  return first;
}

async function rawPost(caller: HttpCaller, body: string): Promise<number> {
  const begun = performance.now();
  await caller.post("/", body);
  return performance.now() - begun;
}
