import { msLater, throughput } from "../../figures.js";
import type { Goal } from "../../goal.js";
import { interleaved } from "../../measure.js";
import { openRouted } from "../../subjects/outbound/routed.js";

/** The cost of the model route: the request is scanned, the response counted and searched. */
export const modelRoute: Goal = {
  id: "I7",
  title: "a request to a model over the route, beside the same scripted server reached directly",
  goal: "first byte ≤ 2 ms later; throughput ≥ 0.9",
  needs: [],
  async run({ pairs }) {
    const world = await openRouted();
    try {
      type Way = "routed" | "relayed" | "direct";
      const whole = (events: string, subject: Way, floor: Way, usual: number) =>
        interleaved(
          async () => (await world[subject](events)).totalMs,
          async () => (await world[floor](events)).totalMs,
          { pairs: pairs(usual) },
        );
      const first = await interleaved(
        async () => (await world.routed("3")).firstByteMs,
        async () => (await world.direct("3")).firstByteMs,
        { pairs: pairs(200), warmUp: 20 },
      );
      const many = "100000";
      const paced = await whole("1000/1000", "routed", "direct", 6);
      const unpaced = await whole(many, "routed", "direct", 8);
      const relay = await whole(many, "relayed", "direct", 8);
      const relayed = await whole(many, "routed", "relayed", 8);
      const limit = { atLeast: 0.9 };
      return [
        msLater("first byte over the route − directly", first, { atMost: 2 }),
        throughput(
          "throughput of 1,000 events at a thousand a second, over the route ÷ directly",
          paced,
          limit,
        ),
        throughput(
          "throughput of 100,000 events, each a chunk, as fast as they go, over the route ÷ directly",
          unpaced,
          limit,
        ),
        throughput("the same through a bare relay ÷ directly", relay),
        throughput("the same over the route ÷ through that relay", relayed, limit),
      ];
    } finally {
      await world.close();
    }
  },
};
