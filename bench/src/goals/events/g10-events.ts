import type { IncomingMessage } from "node:http";
import type { Goal, GoalMeasurement } from "../../goal.js";
import type { HttpCaller } from "../../http.js";
import { interleaved, median, short } from "../../measure.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { startBareServer } from "../../subjects/server/bare-server.js";
import { benchPlugin } from "../../subjects/server/bench-plugin.js";
import { measuredStores } from "../../subjects/server/stores.js";

const count = 200_000;

/** An agent in the server's own process has all events available, and emits them as fast as they are read. */
export const events: Goal = {
  id: "G10",
  title: "events/s through the server ÷ raw node NDJSON, back-pressure on",
  goal: "≥ 0.9",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit({ plugins: [benchPlugin] });
    await using bare = await startBareServer();
    const asking = (prompt: string) =>
      JSON.stringify({ harness: "bench-agent", messages: [{ role: "user", content: `${prompt} ${count}` }] });
    const body = asking("flood");
    const ours = () => eventsPerSecond(ambit.caller, "/run", body);
    const single = await interleaved(ours, () => eventsPerSecond(bare.caller, `/events?n=${count}`, body), {
      pairs: pairs(15),
    });
    const batched = await interleaved(
      ours,
      () => eventsPerSecond(bare.caller, `/events?n=${count}&batch=1`, body),
      { pairs: pairs(15) },
    );
    const generated = await interleaved(
      () => eventsPerSecond(ambit.caller, "/run", asking("generate")),
      () => eventsPerSecond(bare.caller, `/relay?n=${count}`, body),
      { pairs: pairs(9) },
    );
    const stored: GoalMeasurement[] = [];
    for await (const store of measuredStores()) {
      await using _store = store;
      await using keeping = await startAmbit({ plugins: [benchPlugin, store.plugin] });
      const kept = await interleaved(
        () => eventsPerSecond(keeping.caller, "/run", body),
        () => eventsPerSecond(bare.caller, `/events?n=${count}`, body),
        { pairs: pairs(9) },
      );
      stored.push({
        what: `the same, each event stored first: ${store.name}`,
        unit: "×",
        values: kept.ratios,
        limit: { atLeast: 0.5 },
        note: `${short(median(kept.subject))} / ${short(median(kept.floor))} /s`,
      });
    }
    const rates = ({ subject, floor }: typeof single) =>
      `${short(median(subject))} / ${short(median(floor))} /s`;
    return [
      {
        what: "events/s ÷ raw NDJSON, a write per event",
        unit: "×",
        values: single.ratios,
        limit: { atLeast: 0.9 },
        note: rates(single),
      },
      {
        what: "events/s ÷ raw NDJSON in 16 KiB batches",
        unit: "×",
        values: batched.ratios,
        note: rates(batched),
      },
      {
        what: "an agent that is an async generator ÷ a bare relay of one",
        unit: "×",
        values: generated.ratios,
        note: rates(generated),
      },
      ...stored,
    ];
  },
};

async function eventsPerSecond(caller: HttpCaller, path: string, body: string): Promise<number> {
  const begun = performance.now();
  const lines = await countLines(await caller.open(path, body, "application/x-ndjson"));
  const seconds = (performance.now() - begun) / 1_000;
  if (lines < count) throw new Error(`${lines} of ${count} events came`);
  return lines / seconds;
}

/** Counts bytes only, so that the reader doesn't limit both sides. */
async function countLines(response: IncomingMessage): Promise<number> {
  let lines = 0;
  for await (const chunk of response) {
    const bytes: Buffer = chunk;
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines += 1;
  }
  return lines;
}
