import type { Goal } from "../../goal.js";
import { interleaved, median, mediansOf, short } from "../../measure.js";
import { openBrokered } from "../../subjects/brokered.js";

const MB = 2 ** 20;

/** What it costs that a credential is put on outside: TLS is ended, the request rewritten, the answer searched. */
export const credentialBroker: Goal = {
  id: "I6",
  title: "a request through the credential broker, beside the same server reached directly",
  goal: "first byte ≤ 2 ms later; throughput ≥ 0.9",
  needs: [],
  async run({ pairs }) {
    const world = await openBrokered();
    try {
      const kept = await interleaved(world.throughKept, world.directKept, { pairs: pairs(200), warmUp: 20 });
      const fresh = await interleaved(
        async () => (await world.through(100)).firstByteMs,
        async () => (await world.direct(100)).firstByteMs,
        { pairs: pairs(60), warmUp: 10 },
      );
      const large = await interleaved(
        async () => (await world.through(64 * MB)).totalMs,
        async () => (await world.direct(64 * MB)).totalMs,
        { pairs: pairs(8) },
      );
      const later = (what: string, { subject, floor }: typeof kept) => ({
        what: `first byte through the broker − directly; ${what}`,
        unit: "ms" as const,
        values: subject.map((ms, index) => ms - (floor[index] ?? Number.NaN)),
        limit: { atMost: 2 },
        note: `${short(median(subject))} − ${short(median(floor))} ms`,
      });
      return [
        later("a kept connection", kept),
        later("a new connection", fresh),
        {
          what: "throughput of 64 MiB through the broker ÷ directly",
          unit: "×",
          values: large.ratios.map((ratio) => 1 / ratio),
          limit: { atLeast: 0.9 },
          note: mediansOf(large, "ms"),
        },
      ];
    } finally {
      await world.close();
    }
  },
};
