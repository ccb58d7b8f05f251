import type { GoalMeasurement, Limit } from "./goal.js";
import { median, type Pairs, short } from "./measure.js";

/** How many milliseconds longer the subject took than its floor. */
export function msLater(what: string, { subject, floor }: Pairs, limit: Limit): GoalMeasurement {
  return {
    what,
    unit: "ms",
    values: subject.map((ms, index) => ms - (floor[index] ?? Number.NaN)),
    limit,
    note: `${short(median(subject))} − ${short(median(floor))} ms`,
  };
}
