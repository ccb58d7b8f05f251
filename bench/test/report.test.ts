import { describe, expect, it } from "vitest";
import type { GoalMeasurement } from "../src/goal.js";
import { isMet, jsonReport, markdownTable, textTable } from "../src/report.js";

const ratio = (values: number[], limit?: GoalMeasurement["limit"]): GoalMeasurement => ({
  what: "a | b",
  unit: "×",
  values,
  ...(limit === undefined ? {} : { limit }),
});
const goal = { id: "G0", title: "something", goal: "≤ 2" };

describe("a goal", () => {
  it.each([
    ["met at its limit", [1, 2, 9], { atMost: 2 }, true],
    ["not met above it", [1, 2.01, 9], { atMost: 2 }, false],
    ["met at what it must reach", [0.9], { atLeast: 0.9 }, true],
    ["not met below it", [0.89], { atLeast: 0.9 }, false],
    ["not met by no values at all", [], { atMost: 2 }, false],
  ] as const)("is %s", (_what, values, limit, expected) => {
    expect(isMet(ratio([...values], limit))).toBe(expected);
  });

  it("is neither met nor missed without a limit", () => {
    expect(isMet(ratio([1]))).toBeUndefined();
  });
});

describe("a report", () => {
  const report = {
    machine: "a machine",
    outcomes: [
      { goal, measurements: [ratio([1, 3, 2], { atMost: 1.5 }), ratio([1])] },
      { goal: { ...goal, id: "G1" }, measurements: [], notMeasured: "this host can't" },
    ],
  };

  it("has a row for each figure, and one for what could not be measured", () => {
    const [, , ...rows] = markdownTable(report).trim().split("\n");
    expect(rows).toEqual([
      "| G0 | a \\| b | 2.00 | 1.00–3.00 | ≤ 1.5 | not met | 3 |  |",
      "| G0 | a \\| b | 1.00 | 1.00–1.00 | – | – | 1 |  |",
      "| G1 | something | – | – | ≤ 2 | not measured | – | this host can't |",
    ]);
  });

  it("names the machine above the table", () => {
    expect(textTable(report).split("\n")[0]).toBe("a machine");
  });

  it("gives every value as JSON", () => {
    expect(JSON.parse(jsonReport(report))).toMatchObject({
      machine: "a machine",
      goals: [
        { id: "G0", measurements: [{ values: [1, 3, 2], median: 2, met: false }, { values: [1] }] },
        { id: "G1", notMeasured: "this host can't" },
      ],
    });
  });
});
