import type { Goal } from "../../goal.js";
import { interleaved, median, mediansOf, short } from "../../measure.js";
import { openRouted } from "../../subjects/routed.js";

/** The cost of the model route: the request is scanned, the response counted and searched. */
export const modelRoute: Goal = {
  id: "I7",
  title: "a request to a model over the route, beside the same scripted server reached directly",
  goal: "first byte ≤ 2 ms later; throughput ≥ 0.9",
  needs: [],
  async run({ pairs }) {
    const world = await openRouted();
    try {
      const first = await interleaved(
        async () => (await world.routed("3")).firstByteMs,
        async () => (await world.direct("3")).firstByteMs,
        { pairs: pairs(200), warmUp: 20 },
      );
      const paced = await interleaved(
        async () => (await world.routed("1000/1000")).totalMs,
        async () => (await world.direct("1000/1000")).totalMs,
        { pairs: pairs(6) },
      );
      const unpaced = await interleaved(
        async () => (await world.routed("100000")).totalMs,
        async () => (await world.direct("100000")).totalMs,
        { pairs: pairs(6) },
      );
      return [
        {
          what: "first byte over the route − directly",
          unit: "ms",
          values: first.subject.map((ms, index) => ms - (first.floor[index] ?? Number.NaN)),
          limit: { atMost: 2 },
          note: `${short(median(first.subject))} − ${short(median(first.floor))} ms`,
        },
        {
          what: "throughput of 1,000 events at a thousand a second, over the route ÷ directly",
          unit: "×",
          values: paced.ratios.map((ratio) => 1 / ratio),
          limit: { atLeast: 0.9 },
          note: mediansOf(paced, "ms"),
        },
        {
          what: "throughput of 100,000 events, each a chunk, as fast as they go, over the route ÷ directly",
          unit: "×",
          values: unpaced.ratios.map((ratio) => 1 / ratio),
          limit: { atLeast: 0.9 },
          note: mediansOf(unpaced, "ms"),
        },
      ];
    } finally {
      await world.close();
    }
  },
};
