import type { Goal } from "../../goal.js";
import { interleaved, median, mediansOf, type Pairs, short } from "../../measure.js";
import { type Fetched, openBrokered, type Task } from "../../subjects/brokered.js";

const MB = 2 ** 20;
/** A link of 1 Gbit/s, which is a fast one to a code host or a registry. */
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
        options: { pairs: number; warmUp?: number },
      ) =>
        interleaved(
          async () => cost(await world.fetch({ ...ask, way: "through" })),
          async () => cost(await world.fetch({ ...ask, way: "direct" })),
          options,
        );
      const small = "/100";
      const first = (fetched: Fetched) => fetched.firstByteMs;
      const whole = (fetched: Fetched) => fetched.totalMs;
      const kept = await measured({ path: small, isKept: true }, first, { pairs: pairs(200), warmUp: 20 });
      const fresh = await measured({ path: small, isKept: false }, first, { pairs: pairs(60), warmUp: 10 });
      const paced = await measured({ path: `/${64 * MB}/${gigabit}`, isKept: false }, whole, {
        pairs: pairs(6),
      });
      const unpaced = await measured({ path: `/${64 * MB}`, isKept: false }, whole, { pairs: pairs(8) });
      const later = (what: string, { subject, floor }: Pairs) => ({
        what: `first byte through the broker − directly; ${what}`,
        unit: "ms" as const,
        values: subject.map((ms, index) => ms - (floor[index] ?? Number.NaN)),
        limit: { atMost: 2 },
        note: `${short(median(subject))} − ${short(median(floor))} ms`,
      });
      const throughput = (what: string, taken: Pairs) => ({
        what: `throughput of 64 MiB ${what}, through the broker ÷ directly`,
        unit: "×" as const,
        values: taken.ratios.map((ratio) => 1 / ratio),
        limit: { atLeast: 0.9 },
        note: mediansOf(taken, "ms"),
      });
      return [
        later("a kept connection", kept),
        later("a new connection", fresh),
        throughput("from a server at 1 Gbit/s", paced),
        throughput("as fast as loopback goes", unpaced),
      ];
    } finally {
      await world.close();
    }
  },
};
