import type { Limit, Measurement } from "./goal.js";
import { median, mediansOf, type Pairs, short } from "./measure.js";

/** How many milliseconds longer the subject took than its floor. */
export function msLater(what: string, { subject, floor }: Pairs, limit: Limit): Measurement {
  return {
    what,
    unit: "ms",
    values: subject.map((ms, index) => ms - (floor[index] ?? Number.NaN)),
    limit,
    note: `${short(median(subject))} − ${short(median(floor))} ms`,
  };
}

/** The subject's throughput as a share of its floor's, from the milliseconds that both took. */
export function throughput(what: string, pairs: Pairs, limit?: Limit): Measurement {
  return {
    what,
    unit: "×",
    values: pairs.ratios.map((ratio) => 1 / ratio),
    ...(limit === undefined ? {} : { limit }),
    note: mediansOf(pairs, "ms"),
  };
}
