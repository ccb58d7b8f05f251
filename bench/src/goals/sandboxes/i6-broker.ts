import { msLater, throughput } from "../../figures.js";
import type { Goal } from "../../goal.js";
import { interleaved } from "../../measure.js";
import { type Fetched, openBrokered, type Task } from "../../subjects/outbound/brokered.js";

const MB = 2 ** 20;
/** Bytes per second at 1 Gbit/s: a fast connection to a code host or a registry. */
const gigabit = 125_000_000;

/** The cost of adding a credential outside: TLS termination, rewriting the request, searching the response. */
export const credentialBroker: Goal = {
  id: "I6",
  title: "a request through the credential broker, beside the same server reached directly",
  goal: "first byte ≤ 2 ms later; throughput ≥ 0.9",
  needs: [],
  async run({ pairs }) {
    const world = await openBrokered();
    try {
      const measured = (
        ask: Omit<Task, "way">,
        cost: (fetched: Fetched) => number,
        options: { pairs: number; warmUp?: number; ways?: readonly [Task["way"], Task["way"]] },
      ) => {
        const [subject, floor] = options.ways ?? ["through", "direct"];
        return interleaved(
          async () => cost(await world.fetch({ ...ask, way: subject })),
          async () => cost(await world.fetch({ ...ask, way: floor })),
          options,
        );
      };
      const small = "/100";
      const first = (fetched: Fetched) => fetched.firstByteMs;
      const whole = (fetched: Fetched) => fetched.totalMs;
      const kept = await measured({ path: small, isKept: true }, first, { pairs: pairs(200), warmUp: 20 });
      const fresh = await measured({ path: small, isKept: false }, first, { pairs: pairs(60), warmUp: 10 });
      const paced = await measured({ path: `/${64 * MB}/${gigabit}`, isKept: false }, whole, {
        pairs: pairs(6),
      });
      const bulk = { path: `/${64 * MB}`, isKept: false };
      const unpaced = await measured(bulk, whole, { pairs: pairs(8) });
      const relay = await measured(bulk, whole, { pairs: pairs(8), ways: ["relayed", "direct"] });
      const relayed = await measured(bulk, whole, { pairs: pairs(8), ways: ["through", "relayed"] });
      const firstByte = "first byte through the broker − directly";
      const later = { atMost: 2 };
      const limit = { atLeast: 0.9 };
      return [
        msLater(`${firstByte}; a kept connection`, kept, later),
        msLater(`${firstByte}; a new connection`, fresh, later),
        throughput(
          "throughput of 64 MiB from a server at 1 Gbit/s, through the broker ÷ directly",
          paced,
          limit,
        ),
        throughput(
          "throughput of 64 MiB as fast as loopback goes, through the broker ÷ directly",
          unpaced,
          limit,
        ),
        throughput("the same through a bare relay that ends TLS on both sides ÷ directly", relay),
        throughput("the same through the broker ÷ through that relay", relayed, limit),
      ];
    } finally {
      await world.close();
    }
  },
};
