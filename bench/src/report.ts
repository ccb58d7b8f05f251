import type { Goal, GoalMeasurement, Limit } from "./goal.js";
import { median, short } from "./measure.js";

/** The outcome of one goal. */
export interface Outcome {
  readonly goal: Pick<Goal, "id" | "title" | "goal">;
  readonly measurements: readonly GoalMeasurement[];
  /** Why there are no measurements. */
  readonly notMeasured?: string;
}

export interface Report {
  readonly machine: string;
  readonly outcomes: readonly Outcome[];
}

export function isMet({ values, limit }: GoalMeasurement): boolean | undefined {
  if (limit === undefined) return undefined;
  const value = median(values);
  return "atMost" in limit ? value <= limit.atMost : value >= limit.atLeast;
}

interface Row {
  readonly goal: string;
  readonly what: string;
  readonly measured: string;
  readonly range: string;
  readonly limit: string;
  readonly verdict: string;
  readonly pairs: string;
  readonly note: string;
}

const header: Row = {
  goal: "#",
  what: "what",
  measured: "median",
  range: "min–max",
  limit: "goal",
  verdict: "met",
  pairs: "pairs",
  note: "behind it",
};

function rowsOf({ goal, measurements, notMeasured }: Outcome): readonly Row[] {
  if (notMeasured !== undefined) {
    const empty = { measured: "–", range: "–", pairs: "–" };
    return [
      {
        goal: goal.id,
        what: goal.title,
        ...empty,
        limit: goal.goal,
        verdict: "not measured",
        note: notMeasured,
      },
    ];
  }
  return measurements.map((measurement) => {
    const { what, values, limit, note = "" } = measurement;
    const met = isMet(measurement);
    return {
      goal: goal.id,
      what,
      measured: withUnit(median(values), measurement),
      range: `${short(Math.min(...values))}–${short(Math.max(...values))}`,
      limit: limit === undefined ? "–" : limitText(limit, measurement),
      verdict: met === undefined ? "–" : met ? "met" : "not met",
      pairs: String(values.length),
      note,
    };
  });
}

function limitText(limit: Limit, measurement: GoalMeasurement): string {
  return "atMost" in limit
    ? `≤ ${withUnit(limit.atMost, measurement, plain)}`
    : `≥ ${withUnit(limit.atLeast, measurement, plain)}`;
}

const plain = (value: number) => String(value);

function withUnit(value: number, { unit }: GoalMeasurement, written = short): string {
  if (unit === "×" || unit === "count") return written(value);
  return unit === "/s" ? `${written(value)}/s` : `${written(value)} ${unit}`;
}

const columns = ["goal", "what", "measured", "range", "limit", "verdict", "pairs", "note"] as const;

export function textTable({ machine, outcomes }: Report): string {
  const rows = [header, ...outcomes.flatMap(rowsOf)];
  const widths = columns.map((column) => Math.max(...rows.map((row) => row[column].length)));
  const lines = rows.map((row) =>
    columns
      .map((column, index) => row[column].padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${machine}\n\n${lines.join("\n")}\n`;
}

export function markdownTable({ outcomes }: Report): string {
  const line = (row: Row) => `| ${columns.map((column) => row[column].replaceAll("|", "\\|")).join(" | ")} |`;
  const ruler = `|${columns.map(() => "---|").join("")}`;
  return [line(header), ruler, ...outcomes.flatMap(rowsOf).map(line), ""].join("\n");
}

/** Every value of every pair, for readers who want to check. */
export function jsonReport({ machine, outcomes }: Report): string {
  const goals = outcomes.map(({ goal, measurements, notMeasured }) => ({
    id: goal.id,
    title: goal.title,
    goal: goal.goal,
    ...(notMeasured === undefined ? {} : { notMeasured }),
    measurements: measurements.map((measurement) => ({
      ...measurement,
      median: median(measurement.values),
      met: isMet(measurement),
    })),
  }));
  return `${JSON.stringify({ machine, goals }, undefined, 2)}\n`;
}
