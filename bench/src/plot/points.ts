import { median, percentile } from "../measure.js";
import type { Report } from "../report.js";
import type { Plot } from "./dot-plot.js";

/** The plot of a report's measurements that have a place in one. @throws Error when there are none. */
export function plotOf({ machine, outcomes }: Report): Plot {
  const points = outcomes
    .flatMap(({ measurements }) => measurements)
    .flatMap(({ point, values }) =>
      point === undefined || values.length === 0
        ? []
        : [{ ...point, median: median(values), p95: percentile(values, 95) }],
    );
  if (points.length === 0) throw new Error("none of these goals has a plot: C1 has one");
  return {
    title: "From creating a sandbox to the output of its first command (node -v)",
    caption: `${machine}. Logarithmic; shorter is better.`,
    values: points,
  };
}
